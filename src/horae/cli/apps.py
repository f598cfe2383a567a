"""Loading of the user's app, `package.module:app`, from the folder in which the command was started."""

import inspect
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from horae.client.places import raised_at
from horae.errors import BadInput, HoraeError, NotFound

if TYPE_CHECKING:
    from horae.client.app import App


def load_app(place: str) -> "App":
    """Import the app that `package.module:name` names; the name defaults to `app`."""
    from horae.client.app import App

    module_name, _, attribute = place.partition(":")
    attribute = attribute or "app"
    if "/" in module_name or module_name.endswith(".py"):
        suggestion = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise BadInput(f"{place!r} is a path, not a module.", f"Write it as {suggestion}:{attribute}.")
    module = _module(module_name)
    found = getattr(module, attribute, None)
    if found is None:
        raise NotFound(f"{module_name} has no {attribute!r}.", _apps_in(module, App))
    if not isinstance(found, App):
        raise BadInput(f"{place} is a {type(found).__name__}, not an App.", _apps_in(module, App))
    return found


def places_of(app: Any) -> dict[str, tuple[str, int]]:
    """Return the file and line of the function of each job and workflow."""
    jobs = {**app.jobs, **getattr(app, "workflows", {})}
    functions = {name: inspect.unwrap(job.function) for name, job in jobs.items()}
    codes = {name: function.__code__ for name, function in functions.items() if hasattr(function, "__code__")}
    return {name: (code.co_filename, code.co_firstlineno) for name, code in codes.items()}


def _module(name: str) -> Any:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise _broken(name, error) from error
        remedy = "Start the command in the folder that contains the package, or install the package."
        raise NotFound(f"There is no module {error.name!r} to load the app from.", remedy) from None
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> HoraeError:
    """Return the error for a module that fails to load, with the last line of the user's code in the traceback."""
    found = raised_at(error.__traceback__)
    place = "" if found is None else f" ({found[0]}, line {found[1]})"
    remedy = f'Correct the code; `python -c "import {name}"` shows the whole traceback.'
    return BadInput(f"{name} cannot be loaded: {type(error).__name__}: {error}{place}.", remedy)


def _apps_in(module: Any, kind: type) -> str:
    apps = [attribute for attribute, value in vars(module).items() if isinstance(value, kind)]
    return f"Did you mean {module.__name__}:{apps[0]}?" if apps else "Create one with: app = horae.App()"
