"""Objects that can be wrapped, the attributes they keep, and the calls they make."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import sys
import threading
from collections import UserList, deque
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest
from tests.conversations import Chat, talk

from compacter import Compacter, History, compacted
from compacter.call.arguments import bind
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError, token_limit_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def compacter(**options: Any) -> Compacter:
    options.setdefault("summarizer", ScriptedSummarizer("They asked and answered."))
    return Compacter(**options)


def answered(reply: Any) -> str:
    text: str = reply["choices"][0]["message"]["content"]
    return text


class Client:
    """A program's own client: a bound method, a callable object, a class that is not a function."""

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model
        self.name = "mine"

    def chat(self, messages: Sequence[Chat]) -> Any:
        """Say something."""
        return self.model.completion(self.name, messages)

    async def achat(self, messages: Sequence[Chat]) -> Any:
        return await self.model.acompletion(self.name, messages)

    @classmethod
    def of(cls, messages: Sequence[Chat], model: ScriptedModel) -> Any:
        return cls(model).chat(messages)

    @staticmethod
    def plain(messages: Sequence[Chat], model: ScriptedModel) -> Any:
        return model.completion("m", messages)

    def __call__(self, messages: Sequence[Chat]) -> Any:
        return self.chat(messages)


class AsyncClient(Client):
    async def __call__(self, messages: Sequence[Chat]) -> Any:
        return await self.achat(messages)


SHAPES: dict[str, Callable[[ScriptedModel], Any]] = {
    "lambda": lambda model: lambda messages: model.completion("m", messages),
    "partial": lambda model: functools.partial(model.completion, "m"),
    "partial of partial": lambda model: functools.partial(
        functools.partial(model.completion, temperature=0), "m"
    ),
    "partial by name": lambda model: functools.partial(model.completion, model="m"),
    "bound method": lambda model: Client(model).chat,
    "callable object": Client,
    "class method": lambda model: functools.partial(Client.of, model=model),
    "static method": lambda model: functools.partial(Client.plain, model=model),
    "partial of an object": lambda model: functools.partial(model, "m"),
    "open-ended": lambda model: lambda *args, **kwargs: model.completion("m", *args, **kwargs),
    "async partial": lambda model: functools.partial(model.acompletion, "m"),
    "async method": lambda model: Client(model).achat,
    "async object": AsyncClient,
    "awaitable": lambda model: lambda messages: model.acompletion("m", messages),
}


@pytest.mark.parametrize("name", SHAPES)
async def test_each_shape_survives_a_token_limit(name: str) -> None:
    model = ScriptedModel(window=900)

    reply = compacter().wrap(SHAPES[name](model))(messages=talk())
    reply = await reply if inspect.isawaitable(reply) else reply

    assert answered(reply) == "ok"
    assert [request.refused for request in model.requests] == [True, False]


class TestSyncCallables:
    @pytest.mark.parametrize("name", ["messages", "input", "contents", "history"])
    def test_the_argument_may_have_another_name(self, name: str) -> None:
        model = ScriptedModel(window=900)
        namespace: dict[str, Any] = {"model": model}
        source = f"def chat({name}, *, depth=0):\n    return model.completion('m', {name})\n"
        exec(source, namespace)  # noqa: S102 - the parameter's name is the subject here
        chat = namespace["chat"]

        wrapped = compacter().wrap(chat, messages_param=name, wire_format="openai")

        assert answered(wrapped(**{name: talk()})) == "ok"
        assert answered(wrapped(talk(), depth=2)) == "ok"

    def test_other_arguments_reach_every_request_as_they_were(self) -> None:
        model = ScriptedModel(window=900)

        compacter().wrap(model.completion)("m", talk(), temperature=0.3, user="me", tools=[])

        assert [dict(request.options) for request in model.requests] == [
            {"temperature": 0.3, "user": "me", "tools": []}
        ] * 2

    def test_the_callers_list_is_never_changed(self) -> None:
        model = ScriptedModel(window=900)
        history = talk()
        before = copy.deepcopy(history)
        objects = list(map(id, history))

        compacter().wrap(model.completion)("m", history)

        assert history == before
        assert list(map(id, history)) == objects

    def test_kept_messages_are_the_identical_objects(self) -> None:
        seen: list[list[Chat]] = []
        model = ScriptedModel(window=900)

        def chat(messages: list[Chat]) -> Any:
            seen.append(messages)
            return model.completion("m", messages)

        history = talk()
        compacter(recall=None).wrap(chat)(messages=history)

        assert seen[0] is history
        strangers = [message for message in seen[1] if not any(message is own for own in history)]
        assert len(strangers) == 1
        assert strangers[0]["content"].startswith(summary_message.TAG)

    @pytest.mark.parametrize("kind", [str, tuple, list, deque, UserList])
    @pytest.mark.parametrize("trigger", [None, 100_000])
    def test_what_fits_is_the_very_object(self, kind: Any, trigger: int | None) -> None:
        """Also when something is remembered."""
        model = ScriptedModel(window=400)
        passed = []
        own = compacter(trigger_tokens=trigger)
        own.wrap(model.completion)("m", talk(30))
        assert own.totals.rounds == 1

        @own
        def ask(messages: object) -> str:
            passed.append(messages)
            return "an answer"

        given = "a question" if kind is str else kind(talk(2))
        ask(given)
        ask(messages=given)
        assert all(each is given for each in passed)

    @pytest.mark.parametrize(
        "messages", [talk(2), "a question", None], ids=["list", "text", "none"]
    )
    @pytest.mark.parametrize(
        "kind", [ValueError, StopIteration, StopAsyncIteration, KeyboardInterrupt, GeneratorExit]
    )
    def test_an_exception_of_the_function_is_raised_as_it_is_also_when_something_is_remembered(
        self, kind: type[BaseException], messages: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        own = compacter()
        calls = []
        own.wrap(ScriptedModel(window=400).completion)("m", talk(30))
        caplog.clear()
        error = kind("it did not work")

        @own
        def ask(messages: object) -> None:
            calls.append(messages)
            raise error

        with pytest.raises(kind) as caught:
            ask(messages)
        assert caught.value is error
        assert (error.__cause__, error.__context__, getattr(error, "__notes__", [])) == (
            None,
            None,
            [],
        )
        assert len(calls) == 1
        assert not caplog.records

    @pytest.mark.parametrize("kind", [Mock, MagicMock, AsyncMock])
    @pytest.mark.parametrize("refused", [0, 1])
    @pytest.mark.parametrize("hooked", [False, True])
    @pytest.mark.parametrize("way", ["sync", "async", "awaitable"])
    async def test_a_mock_is_a_reply(self, kind: Any, refused: int, hooked: bool, way: str) -> None:
        reply = kind()
        refusal = token_limit_error(limit=800, input_tokens=1_100)
        sync = Mock(side_effect=[*[refusal] * refused, reply])

        async def asynchronous(messages: Sequence[Chat]) -> Any:
            return sync(messages)

        def awaitable(messages: Sequence[Chat]) -> Any:
            return asynchronous(messages)

        options: dict[str, Any] = {"on_event": list[Any]().append} if hooked else {}
        functions: dict[str, Any] = {"sync": sync, "async": asynchronous, "awaitable": awaitable}
        found = compacter(summarizer="extractive", **options).wrap(functions[way])(messages=talk())
        assert (found if way == "sync" else await found) is reply


class TestAFunctionThatTakesAnyKeyword:
    """Such as ``def ask(**options): return client.responses.create(**options)``: messages are where
    they are passed.
    """

    @pytest.mark.parametrize("kind", ["a list", "a history", "an iterator"])
    @pytest.mark.parametrize("name", ["messages", "input", "contents"])
    def test_messages_are_found_under_each_of_their_names(self, kind: str, name: str) -> None:
        model = ScriptedModel(window=900)
        sent = list[int]()

        def ask(**options: Any) -> Any:
            sent.append(len(options[name]))
            return model.completion("any-model", options[name])

        messages = {"a list": talk(), "a history": History(talk()), "an iterator": iter(talk())}[
            kind
        ]
        wrapped: Any = compacter().wrap(ask, wire_format="openai")

        assert answered(wrapped(**{name: messages})) == "ok"
        assert sent[0] == len(talk()) > sent[-1]

    @pytest.mark.parametrize(
        ("form", "name"), [("responses", "input"), ("gemini", "contents"), ("openai", "messages")]
    )
    def test_a_format_says_what_its_messages_are_called(self, form: str, name: str) -> None:
        def ask(**options: Any) -> None: ...

        binding = bind(ask, wire_format=form)
        assert binding is not None
        assert binding.messages_param == name


class TestTheModelAsItsOwnSummarizer:
    def test_it_is_asked_without_tools_stream_or_format(self) -> None:
        model = ScriptedModel(window=900, replies="A short one.")
        tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]

        stream: Any = Compacter().wrap(model.completion)(
            "m",
            talk(),
            stream=True,
            tools=tools,
            tool_choice="auto",
            response_format={"type": "json_object"},
            temperature=0.3,
            user="me",
        )
        list(stream)

        summaries = [request for request in model.requests if len(request.messages) == 1]
        assert summaries
        for request in summaries:
            assert not request.streaming
            assert set(request.options) == {"temperature", "user", "max_tokens"}
            assert request.model == "m"


class TestAsyncCallables:
    async def test_a_plain_function_that_returned_an_awaitable_is_async(self) -> None:
        model = ScriptedModel(window=900)
        threads = list[int]()

        async def summarizer(messages: Sequence[Chat]) -> str:
            threads.append(threading.get_ident())
            return "They asked and answered."

        call: Any = compacter(summarizer=summarizer, trigger_tokens=400).wrap(
            lambda messages: model.acompletion("m", messages)
        )
        await call(messages=talk(2))
        await call(messages=talk())

        assert threads == [threading.get_ident()]

    async def test_an_asyncio_program_needs_no_trio(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, "trio", raising=False)
        model = ScriptedModel(window=900)
        assert answered(await compacter().wrap(model.acompletion)("m", talk())) == "ok"


class TestWhatStays:
    def test_name_signature_doc_and_attributes(self) -> None:
        def chat(messages: list[Chat], *, depth: int = 0) -> str:
            """Say something."""
            return "said"

        chat.version = 3  # type: ignore[attr-defined]
        wrapped: Any = compacter().wrap(chat)

        assert (wrapped.__name__, wrapped.__doc__, wrapped.version) == ("chat", "Say something.", 3)
        assert inspect.signature(wrapped) == inspect.signature(chat)
        assert wrapped.__wrapped__ is chat

    @pytest.mark.parametrize(
        "kind", ["isfunction", "iscoroutinefunction", "isgeneratorfunction", "isasyncgenfunction"]
    )
    def test_its_kind(self, kind: str) -> None:
        def plain(messages: Any) -> None: ...
        async def coroutine(messages: Any) -> None: ...
        def generator(messages: Any) -> Any:
            yield

        async def async_generator(messages: Any) -> Any:
            yield

        for function in (plain, coroutine, generator, async_generator):
            asked = getattr(inspect, kind)
            assert asked(compacter().wrap(function)) == asked(function)

    def test_a_callable_object_keeps_its_type_and_its_attributes(self) -> None:
        client = Client(ScriptedModel(window=900))

        wrapped = compacter().wrap(client)

        assert wrapped is not client
        assert isinstance(wrapped, Client)
        assert wrapped.name == "mine"
        assert answered(wrapped(talk())) == "ok"
        with pytest.raises(TokenLimitError):
            client(talk())

    @pytest.mark.parametrize("kind", ["a mock", "a proxy", "a static method as its call"])
    def test_a_function_stands_for_an_object_that_cannot_change(self, kind: str) -> None:
        class Proxy:
            def __init__(self, function: Any) -> None:
                self.function = function

            def __getattr__(self, name: str) -> Any:
                return getattr(vars(self)["function"], name)  # A copy has no function yet.

            def __call__(self, messages: Sequence[Chat]) -> Any:
                return self.function("m", messages)

        model = ScriptedModel(window=900)

        class Static:
            __call__ = staticmethod(lambda messages: model.completion("m", messages))

        kinds: dict[str, Any] = {
            "a mock": Mock(side_effect=lambda messages: model.completion("m", messages)),
            "a proxy": Proxy(model.completion),
            "a static method as its call": Static(),
        }
        assert answered(compacter().wrap(kinds[kind])(messages=talk())) == "ok"

    @pytest.mark.parametrize("kind", ["sync", "async"])
    def test_what_a_callable_object_keeps_is_on_the_original(self, kind: str) -> None:
        class Counted:
            calls = 0

            def __call__(self, messages: Sequence[Chat]) -> str:
                self.calls += 1
                return "Done."

        class Awaited:
            calls = 0

            async def __call__(self, messages: Sequence[Chat]) -> str:
                self.calls += 1
                return "Done."

        counted: Any = Counted() if kind == "sync" else Awaited()
        reply = compacter().wrap(counted)(talk())

        assert (asyncio.run(reply) if kind == "async" else reply) == "Done."
        assert counted.calls == 1


class TestDecorators:
    def test_an_instance_decorates(self) -> None:
        model = ScriptedModel(window=900)
        middle = compacter()

        @middle
        def chat(messages: list[Chat]) -> Any:
            return model.completion("m", messages)

        assert answered(chat(talk())) == "ok"
        assert middle.totals.calls == 1

    def test_compacted_with_another_name_for_the_messages(self) -> None:
        model = ScriptedModel(window=900)

        @compacted(summarizer="extractive", messages_param="dialogue", wire_format="openai")
        def chat(dialogue: list[Any]) -> Any:
            return model.completion("m", dialogue)

        assert chat(talk())
        assert model.rejected == 1

    async def test_compacted_called(self) -> None:
        model = ScriptedModel(window=900)

        @compacted(compact_ratio=0.5, summarizer=ScriptedSummarizer("They talked."))
        async def chat(messages: list[Chat]) -> Any:
            return await model.acompletion("m", messages)

        assert answered(await chat(talk())) == "ok"

    @pytest.mark.parametrize("kind", [staticmethod, classmethod])
    def test_a_static_or_class_method_can_be_decorated_before_or_after(self, kind: Any) -> None:
        model = ScriptedModel(window=900)

        def chat(*owner: Any, messages: Sequence[Chat]) -> Any:
            return model.completion("m", messages)

        class Program:
            before = kind(compacter()(chat))
            after = compacter()(kind(chat))

        assert answered(Program.before(messages=talk())) == "ok"
        assert answered(Program().after(messages=talk())) == "ok"

    def test_a_method_can_be_decorated_in_its_class(self) -> None:
        class Agent:
            def __init__(self) -> None:
                self.model = ScriptedModel(window=900, replies="A short one.")

            @compacted
            def chat(self, messages: list[Chat]) -> Any:
                return self.model.completion("m", messages)

        agent = Agent()
        assert answered(agent.chat(talk())) == "A short one."
        assert answered(agent.chat(messages=talk())) == "A short one."


def sdk_of_xai(module: str, name: str) -> Any:
    """An object of a class such as xAI's SDK has, with its method."""

    class Client:
        def create(self, model: str, messages: list[Any]) -> Any:
            return object()

    Client.__module__ = module
    Client.__name__ = Client.__qualname__ = name
    return type("Child", (Client,), {})()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("xai_sdk.client", "BaseClient"),
        ("xai_sdk.chat", "BaseClient"),
        ("xai_sdk.chat", "BaseChat"),
    ],
)
def test_xais_own_sdk_is_refused_with_what_works(module: str, name: str) -> None:
    """Its `create` takes messages and sends nothing: that would never be compacted."""
    client = sdk_of_xai(module, name)
    for target in (client, client.create):
        with pytest.raises(TypeError, match=r'gRPC.* OpenAI\(base_url="https://api.x.ai/v1"\)'):
            Compacter().wrap(target)


def test_a_function_of_executed_code_has_no_module_and_is_wrapped() -> None:
    """As in a notebook's cell, or in a page of this manual."""
    names: dict[str, Any] = {}
    exec("def chat(messages, **options):\n    return 'ok'", names)  # noqa: S102 - the case
    names["chat"].__module__ = None
    assert Compacter().wrap(names["chat"])([{"role": "user", "content": "Hi."}]) == "ok"
