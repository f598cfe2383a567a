"""How much a command, or a function in a process of its own, may use of its worker's machine."""

from msgspec import Struct, structs

from horae.env import Micros


class Confines(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Limits of one execution; what is None is not limited here. Sizes are bytes."""

    memory: int | None = None  # of all its processes together
    cpu: Micros | None = None  # processor time of all of them
    files: int | None = None  # open at once in one process
    processes: int | None = None  # at once
    output: int | None = None  # bytes that it writes to its log, whether they are kept or not
    file_size: int | None = None  # of a file that it writes

    def over(self, defaults: "Confines") -> "Confines":
        """These, with defaults for what is not said."""
        said = {name: value for name, value in structs.asdict(self).items() if value is not None}
        return structs.replace(defaults, **said)


FREE = Confines()
