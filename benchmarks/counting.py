# ruff: noqa: RUF001 - the first article of the Declaration of Human Rights, in the scripts of the world
"""How far the estimate of tokens is from the truth, for real kinds of text, and what estimating and counting cost.

    python benchmarks/counting.py [--quick] [--out FILE.json]

The truth is what the models' own tokenizers say (the extra `tokens`). "x" is the truth over the estimate: a run
reserves 1.5 times the estimate of what no provider has counted yet, so up to 1.5 a reservation holds. Texts are from
the machine that this runs on (Python's library, the documents of this repository, licences) or made with a fixed seed.
"""

from __future__ import annotations

import argparse
import base64
import inspect
import json
import math
import os
import random
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tenlines.core.transcript import (
    Assistant,
    Json,
    Message,
    Opaque,
    Result,
    Text,
    ToolCall,
    estimate_text,
    estimate_tokens,
)
from tenlines.counting import first_count, tokenizer_for

MODELS = ("openai:gpt-5", "openai:gpt-4", "local", "ollama:llama3.1")
RESERVED = 1.5
DICE = random.Random(7)

# --- texts ----------------------------------------------------------------------------------------------


def licences() -> str:
    """Legal English."""
    texts = []
    for package in sorted(metadata.distributions(), key=lambda one: one.name):
        for file in package.files or ():
            if file.name.upper().startswith("LICENSE") and file.locate().is_file():
                texts.append(Path(str(file.locate())).read_text(errors="replace"))
    return "\n".join(dict.fromkeys(texts))


def documents() -> str:
    """Technical English, in Markdown, with code and tables."""
    folder = Path(__file__).parent.parent
    return "\n".join(file.read_text() for file in [folder / "README.md", *sorted(folder.glob("docs/**/*.md"))])


def docstrings() -> str:
    """Technical English, without markup."""
    modules = map(
        import_module, ("argparse", "asyncio.events", "decimal", "email.message", "logging", "pathlib", "typing")
    )
    found = [inspect.getdoc(value) for module in modules for _, value in sorted(vars(module).items())]
    return "\n\n".join(dict.fromkeys(text for text in found if text))


@cache
def words() -> list[str]:
    """Plain English words."""
    return [word for word in licences().lower().split() if word.isalpha() and word.isascii()]


def some(count: int = 1, between: str = " ") -> str:
    """A few words."""
    return between.join(DICE.choice(words()) for _ in range(count))


def lines(make: Callable[[], str], count: int = 1_000) -> str:
    """Lines of one kind."""
    return "\n".join(make() for _ in range(count))


def code() -> str:
    """Python's library."""
    return "".join(file.read_text(errors="replace") for file in sorted(Path(os.__file__).parent.glob("[a-m]*.py")))


def html() -> str:
    """Markup with classes and links."""
    return lines(lambda: f'<div class="{some(2, "-")}"><a href="/{some()}/{DICE.randrange(9999)}">{some(4)}</a></div>')


def order() -> dict[str, Any]:
    """What an API says of an order."""
    return {
        "id": DICE.randrange(10**5),
        "customer_name": some(2).title(),
        "email": f"{some()}@{some()}.com",
        "created_at": f"2026-0{DICE.randrange(1, 9)}-1{DICE.randrange(9)}T10:{DICE.randrange(10, 59)}:07Z",
        "total": round(DICE.uniform(0, 500), 2),
        "paid": DICE.random() < 0.5,
        "items": [{"sku": f"AB-{DICE.randrange(10**4)}", "quantity": DICE.randrange(9), "note": some(4)} for _ in "ab"],
    }


def as_json(**how: Any) -> str:
    """Many orders."""
    return json.dumps([order() for _ in range(200)], **how)


def arguments() -> str:
    """Arguments of tool calls."""
    return lines(lambda: json.dumps({some(): DICE.randrange(1000), f"{some()}_id": some(2)}))


def web_log() -> str:
    """Lines of a web server."""

    def line() -> str:
        address = ".".join(str(DICE.randrange(256)) for _ in range(4))
        when = f"12/Mar/2026:1{DICE.randrange(9)}:{DICE.randrange(10, 59)}:{DICE.randrange(10, 59)} +0000"
        asked = f"GET /{some(2, '/')}?id={DICE.randrange(10**5)} HTTP/1.1"
        return f'{address} - - [{when}] "{asked}" 200 {DICE.randrange(10**5)}'

    return lines(line)


def package_log() -> str:
    """Times, states, names and versions."""
    names = sorted({f"{package.name} {package.version}" for package in metadata.distributions()})
    return lines(
        lambda: f"2026-03-1{DICE.randrange(9)} 14:36:{DICE.randrange(10, 59)} INFO installed {DICE.choice(names)}"
    )


def traces() -> str:
    """Tracebacks."""
    return lines(
        lambda: (
            f'  File "/srv/app/{some()}/{some()}.py", line {DICE.randrange(900)}, in {some(2, "_")}\n'
            f"    return self.{some()}({some()}, {some()}={some()})"
        )
    )


def ids() -> str:
    """UUIDs."""
    return lines(lambda: "-".join(DICE.randbytes(size).hex() for size in (4, 2, 2, 2, 6)))


def urls() -> str:
    """Long addresses with a token in them."""

    def line() -> str:
        token = base64.urlsafe_b64encode(DICE.randbytes(18)).decode()
        return f"https://www.{some()}.com/{some(2, '-')}?source={some()}&session={token}"

    return lines(line)


def emoji(named: str = "") -> str:
    """Pictures, one after the other; or those that are named, among words."""
    if named:
        return " ".join(some() if DICE.random() < 0.8 else DICE.choice(named) for _ in range(3_000))
    all_of_them = [chr(point) for point in range(0x1F300, 0x1FA00) if unicodedata.category(chr(point)) == "So"]
    return "".join(DICE.choice(all_of_them) for _ in range(3_000))


DECLARED = {
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen "
    "begabt und sollen einander im Geist der Brüderlichkeit begegnen.",
    "French": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de "
    "conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
    "Hungarian": "Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és "
    "lelkiismerettel bírván, egymással szemben testvéri szellemben kell hogy viseltessenek.",
    "Vietnamese": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền. Mọi con người đều được "
    "tạo hoá ban cho lý trí và lương tâm và cần phải đối xử với nhau trong tình bằng hữu.",
    "Russian": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью "
    "и должны поступать в отношении друг друга в духе братства.",
    "Greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι "
    "με λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με πνεύμα αδελφοσύνης.",
    "Hebrew": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג "
    "איש ברעהו ברוח של אחווה.",
    "Arabic": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميرًا وعليهم أن يعامل بعضهم بعضًا "
    "بروح الإخاء.",
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें बुद्धि और "
    "अन्तरात्मा की देन प्राप्त है और परस्पर उन्हें भाईचारे के भाव से बर्ताव करना चाहिए।",
    "Bengali": "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে। তাঁদের বিবেক এবং বুদ্ধি আছে; সুতরাং "
    "সকলেরই একে অপরের প্রতি ভ্রাতৃত্বসুলভ মনোভাব নিয়ে আচরণ করা উচিত।",
    "Tamil": "மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்; அவர்கள் மதிப்பிலும், உரிமைகளிலும் சமமானவர்கள், "
    "அவர்கள் நியாயத்தையும் மனச்சாட்சியையும் இயற்பண்பாகப் பெற்றவர்கள்.",
    "Thai": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ",
    "Korean": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 "
    "부여받았으며 서로 형제애의 정신으로 행동하여야 한다.",
    "Japanese": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良"
    "心とを授けられており、互いに同胞の精神をもって行動しなければならない。",
    "Chinese": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    "Chinese, traditional": "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神互相對待。",
}

KINDS: dict[str, Callable[[], str]] = {
    "English: licences": licences,
    "English: this documentation": documents,
    "English: docstrings": docstrings,
    "ENGLISH IN CAPITALS": lambda: licences().upper(),
    "Python": code,
    "HTML": html,
    "tracebacks": traces,
    "JSON: arguments of calls": arguments,
    "JSON: an API's reply": as_json,
    "JSON: without spaces": partial(as_json, separators=(",", ":")),
    "JSON: indented": partial(as_json, indent=2),
    "log of a package manager": package_log,
    "log of a web server": web_log,
    "long URLs": urls,
    "table: padded numbers": lambda: lines(lambda: " ".join(f"{DICE.uniform(0, 1000):10.3f}" for _ in range(8))),
    "table: CSV of numbers": lambda: lines(lambda: ",".join(f"{DICE.uniform(-1000, 1000):.2f}" for _ in range(8))),
    "hex": lambda: DICE.randbytes(20_000).hex(),
    "UUIDs": ids,
    "base64": lambda: base64.b64encode(DICE.randbytes(30_000)).decode(),
    "emoji among words": partial(emoji, "😀😂🙏👍🎉🔥😊✨✅🚀👀"),
    "emoji alone": emoji,
    "rare Chinese characters": lambda: "".join(chr(0x4E00 + number * 7_919 % 20_000) for number in range(10_000)),
    **{language: partial(lambda text: f"{text}\n" * 20, text) for language, text in DECLARED.items()},
}

# --- measuring ------------------------------------------------------------------------------------------


def ratios(models: tuple[str, ...], most: int) -> list[dict[str, Any]]:
    """The truth over the estimate, for each kind of text and each tokenizer."""
    tokenizers = {model: tokenizer_for(model) for model in models}
    rows = []
    for kind, make in KINDS.items():
        text = make()[:most]
        row: dict[str, Any] = {"kind": kind, "characters": len(text), "estimate": estimate_text(text)}
        for model, tokenizer in tokenizers.items():
            if tokenizer is None:
                raise SystemExit(f"there is no tokenizer for {model}: pip install 'tenlines[tokens]'")
            true = tokenizer.count(text)
            if model == models[0]:
                row[f"{tokenizer.name} tokens"] = true
            row[f"{tokenizer.name} x"] = true / row["estimate"]
        rows.append(row)
    return rows


def microseconds(work: Callable[[], Any], times: int) -> float:
    """CPU of one call, the best of five rounds."""
    best = math.inf
    for _ in range(5):
        begin = time.process_time()
        for _ in range(times):
            work()
        best = min(best, time.process_time() - begin)
    return best / times * 1e6


def costs() -> list[dict[str, Any]]:
    """What an estimate costs."""
    text = documents()
    messages: dict[str, Message] = {
        "a call": Assistant("", (ToolCall("c1", "look_up", '{"number": 1}'),)),
        **{
            f"a result of {size:,} characters": Result("a", "b", "ok", (Text(text[:size]),))
            for size in (20, 300, 10_000)
        },
        "a result of 100,000 characters": Result("a", "b", "ok", (Text((text * 2)[:100_000]),)),
        "a result of 10,000 Chinese characters": Result("a", "b", "ok", (Text((DECLARED["Chinese"] * 300)[:10_000]),)),
        "a result of 1,000 characters of JSON": Result("a", "b", "ok", (Json([order() for _ in range(3)]),)),
        "signed reasoning of 5,000 characters": Assistant(
            "", (), (Opaque("p", "m", {"thinking": text[:4_000], "signature": text[:1_000]}),)
        ),
    }
    return [
        {"message": name, "us": microseconds(partial(estimate_tokens, message), 20_000)}
        for name, message in messages.items()
    ]


LOAD = """
import time, tenlines.counting
begin = time.process_time()
tenlines.counting.tokenizer_for({!r})
print(time.process_time() - begin)
"""


def counting(models: tuple[str, ...]) -> list[dict[str, Any]]:
    """What counting exactly costs."""
    rows = []
    text = (code() + documents())[:1_000_000]
    for model in models:
        run = subprocess.run([sys.executable, "-c", LOAD.format(model)], capture_output=True, text=True, check=True)
        tokenizer = tokenizer_for(model)
        assert tokenizer is not None
        messages = [
            Result("a", "b", "ok", (Text(text[start : start + 10_000]),)) for start in range(0, len(text), 10_000)
        ]
        rows.append(
            {
                "tokenizer": tokenizer.name,
                "loading, ms": float(run.stdout) * 1e3,
                "MB/s": len(text) / microseconds(partial(tokenizer.count, text), 3),
                "first_count of 1 MB, ms": microseconds(partial(first_count, model, messages, ()), 3) / 1e3,
            }
        )
    return rows


# --- showing --------------------------------------------------------------------------------------------


def cell(value: Any) -> str:
    """A figure of a table."""
    if isinstance(value, float):
        return f"{value:,.2f}"
    return value if isinstance(value, str) else f"{value:,}"


def show(report: dict[str, Any]) -> None:
    """Print the tables."""
    console = Console(width=150)
    for title in ("ratios", "costs", "counting"):
        rows = report[title]
        table = Table(title=title)
        for column in rows[0]:
            table.add_column(column, justify="left" if isinstance(rows[0][column], str) else "right")
        for row in rows:
            table.add_row(*map(cell, row.values()))
        console.print(table)
    beyond = report["beyond"]
    console.print(
        f"More than {RESERVED} times the estimate: {', '.join(beyond) if beyond else 'none'}.", soft_wrap=True
    )


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one tokenizer, and 20,000 characters of each kind")
    default = Path(__file__).parent / "out" / "counting.json"
    parser.add_argument("--out", default=str(default), help="where the JSON goes")
    options = parser.parse_args()
    models = MODELS[:1] if options.quick else MODELS
    report: dict[str, Any] = {
        "ratios": ratios(models, 20_000 if options.quick else 200_000),
        "costs": costs(),
        "counting": counting(models),
    }
    report["beyond"] = [
        f"{row['kind']} ({name.removesuffix(' x')} {value:.2f})"
        for row in report["ratios"]
        for name, value in row.items()
        if name.endswith(" x") and value > RESERVED
    ]
    show(report)
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
