"""The restricted Jinja2 that `templates/` are written in; functions.py has what templates can call."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jinja2 import (
    FileSystemBytecodeCache,
    FileSystemLoader,
    StrictUndefined,
    TemplateSyntaxError,
    UndefinedError,
    nodes,
)
from jinja2 import __version__ as jinja2_version
from jinja2.sandbox import ImmutableSandboxedEnvironment

from generator.render.functions import (
    TemplateError,
    default,
    each,
    indent,
    items,
    read_key,
    replace,
    sha256_of,
    to_int,
    to_json,
    to_pretty_json,
)

if TYPE_CHECKING:
    from jinja2.bccache import Bucket

SUFFIX: Final = ".yaml.j2"
# Filters of constants are evaluated when a template is compiled, so a change to these files compiles anew.
_COMPILERS: Final = "".join(
    [
        jinja2_version,
        *(Path(__file__).with_name(name).read_text("utf-8") for name in ("environment.py", "functions.py")),
    ]
)


class RestrictedEnvironment(ImmutableSandboxedEnvironment):
    """Jinja2 less all that Go templates don't have in the same form: attributes are keys of maps, and nothing else."""

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        # A `for` over nil is an empty loop in Go.
        template = super()._parse(source, name, filename)
        for loop in template.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, "each", [], [], None, None, lineno=loop.lineno)
        template.set_environment(self)
        return template

    def getattr(self, obj: object, attribute: str) -> object:
        """Read a key of a map; None when it is missing, as Go does."""
        if isinstance(obj, StrictUndefined):
            return super().getattr(obj, attribute)
        return read_key(obj, attribute)

    def getitem(self, obj: object, argument: object) -> object:
        """Read `map[key]`; Go's `index`."""
        return read_key(obj, argument)

    def is_safe_callable(self, obj: object) -> bool:
        """Return whether a template may call `obj`: macros and the functions of its context."""
        return callable(obj)


class _CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates in `__pycache__` beside them, as Python keeps its own.

    Compiling takes twice as long as a render. Where that folder can't be written, each render compiles.
    """

    def get_source_checksum(self, source: str) -> str:
        """Checksum of a template and of what compiles it."""
        return super().get_source_checksum(_COMPILERS + source)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a compiled template, if possible."""
        with suppress(OSError):
            Path(self.directory).mkdir(exist_ok=True)
            super().dump_bytecode(bucket)


def make_environment(root: Path) -> RestrictedEnvironment:
    """Make the environment for the templates in the folder `root`. One serves any number of renders."""
    environment = RestrictedEnvironment(
        loader=FileSystemLoader(root),
        bytecode_cache=_CompiledTemplates(str(root / "__pycache__")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters = {
        "to_json": to_json, "to_pretty_json": to_pretty_json, "indent": indent, "int": to_int, "items": items,
        "each": each, "default": default, "sha256": sha256_of, "replace": replace,
    }  # fmt: skip
    environment.tests = {"none": lambda value: value is None}
    environment.globals = {}
    return environment


def template_names(root: Path, *, macros: bool = False) -> list[str]:
    """Paths below `root` of the templates that make objects, or of the files of macros, sorted."""
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob(f"*{SUFFIX}"))
    return [name for name in names if holds_macros(name) == macros]


def holds_macros(name: str) -> bool:
    """Whether a file below `templates/` holds macros: its name begins with an underscore."""
    return name.rpartition("/")[2].startswith("_")


def render_template(environment: RestrictedEnvironment, name: str, template_context: Mapping[str, object]) -> str:
    """Render one template with a `context`; the text is YAML, maybe of several documents or of none.

    Raises TemplateError, which names the template.
    """
    try:
        return environment.get_template(name).render(template_context)
    except TemplateError as fault:
        raise TemplateError(str(fault), template=name) from fault
    except (UndefinedError, TemplateSyntaxError) as error:
        raise TemplateError(error.message or "is not a valid template", template=name) from error
