"""The parts of larger benches: they fill stores, run trials on a virtual clock and time single stages."""
