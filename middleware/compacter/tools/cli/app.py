"""The commands and their options. Each command is carried out by another module, imported on
demand.

The functions called there take the options as arguments, and return the exit code.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

app = typer.Typer(
    help=(
        "A long conversation never dies of a context-window error. FILE may be - for "
        "standard input."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


class Command(TyperCommand):
    """A command whose help names no type of Python's, and its ranges in words."""

    def get_help(self, ctx: Any) -> str:
        """Return the help."""
        text = re.sub(r" <\w+>", "", super().get_help(ctx))
        text = re.sub(r"(default:\s+)\(([^()]+)\)", r"\1\2", text)
        text = re.sub(r"([\d.]+)<=x<=([\d.]+)", r"\1 to \2", text)
        return re.sub(r"x>=([\d.]+)", r"at least \1", text)


Which = Annotated[
    int | None,
    typer.Option(
        "--conversation",
        metavar="NUMBER",
        show_default="the only one",
        help=("Which conversation, from 1, if FILE has several."),
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
Ratio = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        show_default="0.7",
        help=("Share of the size to compact, oldest first: more than 0, at most 1."),
    ),
]
Window = Annotated[
    int | None,
    typer.Option(
        min=64,
        metavar="TOKENS",
        show_default="what is known of the model",
        help="The model's context window.",
    ),
]
Conversation = Annotated[
    str, typer.Argument(metavar="FILE", help="A list of messages, or a request with one.")
]
Output = Annotated[
    str,
    typer.Option(
        "-o", "--output", metavar="FILE", help="The file to write; - for standard output."
    ),
]
Events = Annotated[str, typer.Argument(metavar="EVENTS", help="Events as JSON lines.")]


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"compacter {version('llm-compacter')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


@app.command(
    cls=Command,
    epilog=('Example: compacter explain "prompt is too long: 205668 tokens > 200000 maximum"'),
)
def explain(
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT|FILE", show_default="standard input", help="The error, or a file with it."
        ),
    ] = None,
    status: Annotated[
        int | None,
        typer.Option(
            min=100,
            max=599,
            metavar="STATUS",
            show_default="none",
            help=("HTTP status, if the text lacks it."),
        ),
    ] = None,
    code: Annotated[
        str | None,
        typer.Option(
            metavar="CODE",
            show_default="none",
            help=("The provider's error code, if the text lacks it."),
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also the rows of the table that decided.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Explain whether an error is a token limit, and why. Exit code 1: it is not."""
    from compacter.tools.cli.explain import run

    raise typer.Exit(run(text, status=status, code=code, as_json=as_json, verbose=verbose))


@app.command(cls=Command, epilog="Example: compacter plan chat.json --window 128000")
def plan(
    file: Conversation,
    window: Window = None,
    ratio: Ratio = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", show_default="none", help="A model whose window is looked up."
        ),
    ] = None,
    conversation: Which = None,
    as_json: AsJson = False,
) -> None:
    """Show what would be compacted and what would stay. Changes nothing and calls no model."""
    from compacter.tools.cli.conversation import show_plan

    raise typer.Exit(
        show_plan(file, conversation, window=window, ratio=ratio, model=model, as_json=as_json)
    )


@app.command(
    cls=Command,
    epilog=("Example: compacter compact chat.json -o shorter.json --extractive --budget 20000"),
)
def compact(
    file: Conversation,
    output: Output = "-",
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default="none: sentences are quoted",
            help="A litellm model that writes the summary.",
        ),
    ] = None,
    extractive: Annotated[
        bool, typer.Option("--extractive", help=("Quote sentences; no model (the default)."))
    ] = False,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="CHARACTERS",
            show_default="none: --window or --ratio decides",
            help="Largest size of the result.",
        ),
    ] = None,
    window: Window = None,
    ratio: Ratio = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            show_default="none",
            help=("A rule that the summary must have; may be repeated."),
        ),
    ] = None,
    conversation: Which = None,
    force: Force = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was done as JSON; needs -o FILE.")
    ] = False,
) -> None:
    """Compact the oldest part, and write the result in the same format. Exit code 1: over the
    budget, or the window.
    """
    from compacter.tools.cli.conversation import write_compacted
    from compacter.tools.cli.terminal import MistakeError

    if model and extractive:
        raise MistakeError("pass either --model or --extractive, not both")
    if as_json and output == "-":
        raise MistakeError("--json prints to standard output, so pass -o FILE for the conversation")
    options = {"compact_ratio": ratio, "rules": rule}
    code = write_compacted(
        file,
        output,
        conversation,
        model=model,
        budget=budget,
        window=window,
        force=force,
        as_json=as_json,
        options=options,
    )
    raise typer.Exit(code)


@app.command(cls=Command, epilog='Example: compacter search chat.json "which port did we choose?"')
def search(
    file: Conversation,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A question, or words to look for.")
    ],
    limit: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Largest number of passages.")
    ] = 5,
    conversation: Which = None,
    as_json: AsJson = False,
) -> None:
    """Show the passages that recall would quote for a question. Exit code 1: none."""
    from compacter.tools.cli.conversation import show_passages

    raise typer.Exit(show_passages(file, query, conversation, limit=limit, as_json=as_json))


@app.command(cls=Command, epilog="Example: compacter report events.jsonl -o report.html")
def report(
    events: Events,
    output: Output,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Leave out the text of summaries.")
    ] = False,
    title: Annotated[
        str, typer.Option(metavar="TEXT", help="The page's title.")
    ] = "Context report",
    force: Force = False,
) -> None:
    """Write an HTML report on events. It has sizes, compactions, cost and failures of each
    conversation.
    """
    from compacter.tools.cli.events import report

    raise typer.Exit(report(events, output, title=title, with_text=not no_text, force=force))


@app.command(
    cls=Command, epilog="Example: compacter doctor --model gpt-4o --memory sqlite:compacter.db"
)
def doctor(
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", show_default="none", help="A model to look up; may be repeated."
        ),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            show_default="none",
            help="sqlite:PATH or redis://HOST:PORT/DB; may be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check versions, prices, windows, memories, proxies and SDKs. Exit code 1: a check failed."""
    from compacter.tools.cli.doctor import run

    raise typer.Exit(run(model or [], memory or [], as_json=as_json))


@app.command(cls=Command)
def serve() -> None:
    """Run a server that passes requests on, and compacts those that are too long."""
    # Only for the list of commands: ``main`` starts the server, without typer.


@app.command(cls=Command)
def run() -> None:
    """Run a program, such as an agent, behind that server, and say what was compacted."""
    # As above.
