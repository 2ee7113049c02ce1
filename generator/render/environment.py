"""The restricted Jinja2 in which `templates/` are written.

functions.py has the functions that templates can call.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import jinja2
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from generator.render import functions

if TYPE_CHECKING:
    from jinja2.bccache import Bucket

SUFFIX: Final = ".yaml.j2"
# What a compiled template depends on, apart from its own text. Filters of constants are evaluated
# when a template is compiled, so templates are compiled again after a change of these files.
_COMPILED_BY: Final = "".join(
    [
        jinja2.__version__,
        Path(__file__).read_text("utf-8"),
        Path(__file__).with_name("functions.py").read_text("utf-8"),
    ]
)


class RestrictedEnvironment(ImmutableSandboxedEnvironment):
    """Jinja2 without everything that Go templates lack or do differently.

    An attribute is a key of a map, and nothing else.
    """

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        # In Go, a `for` over nil is an empty loop: the filter `each` makes an empty list of None.
        template = super()._parse(source, name, filename)
        for loop in template.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, "each", [], [], None, None, lineno=loop.lineno)
        template.set_environment(self)
        return template

    def getattr(self, obj: object, attribute: str) -> object:
        """Read `map.key`, as `read_key` does."""
        if isinstance(obj, jinja2.StrictUndefined):
            return super().getattr(obj, attribute)
        return functions.read_key(obj, attribute)

    def getitem(self, obj: object, argument: object) -> object:
        """Read `map[key]`; Go's `index`."""
        return functions.read_key(obj, argument)

    def is_safe_callable(self, obj: object) -> bool:
        """Return whether a template may call `obj`."""
        # `getattr` reads only keys of maps, so templates see no other callables than macros and
        # the functions of their context.
        return callable(obj)


class _CompiledTemplates(jinja2.FileSystemBytecodeCache):
    """Keeps compiled templates in a `__pycache__` folder next to the templates.

    Compiling takes twice as long as a render. If the folder can't be written, each render compiles
    all templates.
    """

    def get_source_checksum(self, source: str) -> str:
        """Checksum of a template and of what compiles it."""
        return super().get_source_checksum(_COMPILED_BY + source)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a compiled template, if possible."""
        with suppress(OSError):
            Path(self.directory).mkdir(exist_ok=True)
            super().dump_bytecode(bucket)


def make_environment(root: Path) -> RestrictedEnvironment:
    """Make the environment for the templates in the folder `root`, for any number of renders."""
    environment = RestrictedEnvironment(
        loader=jinja2.FileSystemLoader(root),
        bytecode_cache=_CompiledTemplates(str(root / "__pycache__")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters = {
        "to_json": functions.to_json,
        "to_pretty_json": functions.to_pretty_json,
        "indent": functions.indent,
        "int": functions.to_int,
        "items": functions.items,
        "each": functions.each,
        "default": functions.default,
        "sha256": functions.sha256_of,
        "replace": functions.replace,
    }
    environment.tests = {"none": lambda value: value is None}
    environment.globals = {}
    return environment


def template_names(root: Path, *, macros: bool = False) -> list[str]:
    """Paths of templates below `root`, sorted.

    macros: of the files of macros; else of the templates that make objects.
    """
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob(f"*{SUFFIX}"))
    return [name for name in names if holds_macros(name) == macros]


def holds_macros(name: str) -> bool:
    """Whether a file below `templates/` holds macros: its name begins with an underscore."""
    return name.rpartition("/")[2].startswith("_")


def render_template(
    environment: RestrictedEnvironment, name: str, template_context: Mapping[str, object]
) -> str:
    """Render the template `name` with the names of `template_context`.

    Returns YAML of any number of documents, or of none. Raises TemplateError, which names the
    template.
    """
    try:
        return environment.get_template(name).render(template_context)
    except functions.TemplateError as fault:
        raise functions.TemplateError(str(fault), template=name) from fault
    except (jinja2.UndefinedError, jinja2.TemplateSyntaxError) as error:
        raise functions.TemplateError(
            error.message or "is not a valid template", template=name
        ) from error
