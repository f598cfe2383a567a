"""A step of a service that fails because the store cannot be reached."""

from types import ModuleType
from typing import Any, NoReturn

import pytest

from horae.engine.service import Service
from horae.errors import StoreUnavailable


async def fails(monkeypatch: pytest.MonkeyPatch, service: Service, module: ModuleType, script: str) -> None:
    """Run a step during which a script of the store cannot be run; afterwards it can."""

    def refuse(*_: Any) -> NoReturn:
        raise StoreUnavailable("The store cannot be reached.", "Try again.")

    with monkeypatch.context() as broken:
        broken.setattr(module, script, refuse)
        with pytest.raises(StoreUnavailable):
            await service.step()
