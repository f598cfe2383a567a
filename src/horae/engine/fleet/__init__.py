"""Workers: sessions, the exchange that feeds them, rescue of lost ones, and scaling."""
