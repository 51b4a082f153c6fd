"""The commands and their options."""

import errno
import os
import re
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from ridgepass.cli import examples
from ridgepass.cli.options import (
    DASH,
    StopRequestedError,
    as_whole,
    parse_alpha,
    parse_seconds,
    sources,
    split_categories,
    split_names,
)
from ridgepass.cli.show import say
from ridgepass.query import CONFIDENCE
from ridgepass.validation import as_confidence

_LONGEST = 2000  # characters of an error
Method = Literal["auto", "exact", "tracked", "fd", "rfd", "isvd", "2lfd", "rp", "cs"]
Nulls = Literal["error", "drop", "zero", "mean"]
Format = Literal["parquet", "csv", "arrow", "npy", "svmlight"]
Data = Annotated[list[str], Parameter(show_default=False)]
Output = Annotated[str, Parameter(alias="-o")]
Many = Annotated[tuple[str, ...], Parameter(show_default=False)]
Flag = Annotated[bool, Parameter(show_default=False)]
Whole = Annotated[int, Parameter(converter=lambda _, tokens: as_whole(tokens[0].value))]

app = App(
    name="ridgepass",
    help=(
        "Ridge regression in one pass over files of any length, in memory that does not grow, "
        "with a certificate of how far the answer is from the exact one."
    ),
    version=version("ridgepass"),
    help_epilogue=examples.OVERVIEW,
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
)


@app.command(help_epilogue=examples.FIT)
def fit(
    data: Data,
    /,
    *,
    output: Output,
    target: Annotated[tuple[str, ...], Parameter(alias="-t", show_default=False)] = (),
    alpha: str = "1",
    features: Many = (),
    exclude: Many = (),
    weight: str | None = None,
    one_hot: Many = (),
    nulls: Nulls = "error",
    format: Format | None = None,
    n_features: Whole | None = None,
    zero_based: Annotated[bool | None, Parameter(negative="--no-zero-based")] = None,
    method: Method = "auto",
    sketch_size: Whole = 256,
    memory: str | None = None,
    dtype: Literal["float32", "float64"] | None = None,
    standardize: Flag = False,
    no_intercept: Flag = False,
    probes: Whole = 24,
    seed: Whole = 0,
    passes: Whole | None = None,
    tol: float | None = None,
    checkpoint: str | None = None,
    every: str = "60s",
    resume: Flag = False,
    json: Flag = False,
    quiet: Annotated[bool, Parameter(alias="-q", show_default=False)] = False,
) -> None:
    r"""Fit a model in one pass over files, or in a few that make it as exact as you like.

    Parameters
    ----------
    data
        Files, directories, patterns such as "data/**/*.parquet", or - for standard input (CSV or
        an Arrow stream). Parquet, CSV (.gz too), Arrow IPC or Feather, .npy and svmlight.
        Directories called key=value add a column.
    output
        The model file to write.
    target
        Column to predict; several with commas (\\, is a comma in a name). For .npy a column's
        number (-1 is the last) or a .npy file of targets; svmlight files have it in each line.
    alpha
        The ridge parameter, or auto to choose it in the same pass.
    features
        Columns to learn from, as names or patterns; all others by default. Numbers, booleans and
        lists of equal length.
    exclude
        Columns to leave out, as names or patterns.
    weight
        Column of sample weights.
    one_hot
        Columns of categories, each category a feature; COL=a,b,c gives the categories, otherwise
        they are collected beforehand.
    nulls
        What becomes of missing values; mean reads the data once more beforehand.
    format
        The files' format, if their names do not tell.
    n_features
        How many features svmlight files have; told from them by default, at the cost of a scan.
    zero_based
        Whether the first feature of svmlight files is called 0 (--no-zero-based: 1); told from
        them by default.
    method
        How XᵀX is remembered.
    sketch_size
        Rows of the sketch.
    memory
        A budget such as 512MB, which sets the sketch size.
    dtype
        What the sketch is kept in; by default as the data is.
    standardize
        Let alpha treat features as if divided by their standard deviations.
    no_intercept
        Fit no intercept.
    probes
        Random vectors that measure the error, for the estimate and the certificate; 0 for none.
    seed
        For the probes, and the random methods 2lfd, rp and cs; the same for models to be merged.
    passes
        Passes over the data in all: 1, the sketch, unless --tol is given. The second one certifies
        the error tightly, and it and each further one make it smaller.
    tol
        Read again until the certified relative error is no larger, such as 1e-3; at most --passes
        times in all, 21 by default.
    checkpoint
        Write a checkpoint here now and then; it is removed when the model is written.
    every
        How often.
    resume
        Go on from the checkpoint. The model comes out the same, to the last byte.
    json
        Print the summary as JSON.
    quiet
        Show no progress.
    """
    from ridgepass.cli.fit import Saving, Training
    from ridgepass.cli.passes import Passes

    more = Passes.of(passes, tol, parse_alpha(alpha))
    if resume and checkpoint is None:
        raise ValueError("--resume needs to know where from: give --checkpoint PATH as before")
    reading = {
        "target": split_names(target) or None,
        "features": split_names(features) or None,
        "exclude": split_names(exclude) or None,
        "weight": weight,
        "one_hot": split_categories(one_hot) or None,
        "nulls": nulls,
        "format": format,
        "n_features": n_features,
        "zero_based": zero_based,
    }
    parameters = {
        "alpha": parse_alpha(alpha),
        "sketch_size": sketch_size,
        "memory": memory,
        "method": method,
        "fit_intercept": not no_intercept,
        "standardize": standardize,
        "probes": probes,
        "dtype": dtype,
        "random_state": seed,
    }
    seconds = parse_seconds(every)
    saving = None if checkpoint is None else Saving(checkpoint, seconds, resume)
    Training(sources(data), reading, parameters, saving, quiet, more).run(output, as_json=json)


@app.command(help_epilogue=examples.PREDICT)
def predict(
    model: str,
    data: Data,
    /,
    *,
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    bounds: Flag = False,
    confidence: float | None = None,
    keep: Many = (),
    alpha: float | None = None,
    nulls: Nulls | None = None,
    format: Format | None = None,
    output_format: Literal["csv", "parquet", "arrow"] | None = None,
    quiet: Annotated[bool, Parameter(alias="-q", show_default=False)] = False,
) -> None:
    """Predict for every row of files.

    Parameters
    ----------
    model
        A model file.
    data
        Files, directories, patterns, or - for standard input, as in fit; with the columns that the
        model was trained on, in any order.
    output
        A .csv, .parquet or .arrow file; standard output by default.
    bounds
        Add the columns lower and upper: the certified interval around exact ridge's prediction.
    confidence
        The least probability that these hold with, all but one in a million by default; 1 for what
        is certain alone.
    keep
        Columns of the data to copy to the output, such as a key.
    alpha
        Another alpha than the model's; no row is trained on again.
    nulls
        What becomes of missing values; as in training by default. Rows to drop get no prediction.
    format
        The files' format, if their names do not tell.
    output_format
        The output's format, if its name does not tell; csv on standard output by default.
    quiet
        Show no progress.
    """
    from ridgepass.cli.predict import predict as run_predict

    if confidence is not None and not bounds:
        raise ValueError("--confidence is about bounds, and none are asked for: add --bounds")
    run_predict(
        model,
        sources(data),
        None if output in (None, DASH) else output,
        bounds=bounds,
        confidence=CONFIDENCE if confidence is None else as_confidence(confidence),
        keep=split_names(keep),
        alpha=alpha,
        nulls=nulls,
        format=format,
        output_format=output_format,
        quiet=quiet or output in (None, DASH),
    )


@app.command(help_epilogue=examples.MERGE)
def merge(models: Data, /, *, output: Output, json: Flag = False) -> None:
    """Merge models of parts of the data, as if all rows had been one stream.

    Parameters
    ----------
    models
        Model files of the same columns, two or more.
    output
        The model file to write; it may be one of them.
    json
        Print the summary as JSON.
    """
    from ridgepass.cli.models import merge as run_merge

    run_merge(models, output, as_json=json)


@app.command(help_epilogue=examples.INSPECT)
def inspect(
    models: Data,
    /,
    *,
    alpha: float | None = None,
    confidence: float = CONFIDENCE,
    json: Flag = False,
) -> None:
    """Say what model files hold, and how good they are.

    Parameters
    ----------
    models
        Model files or checkpoints.
    alpha
        Look at another alpha than the model's.
    confidence
        The least probability that the certified error holds with; 1 for what is certain alone.
    json
        Print JSON.
    """
    from ridgepass.cli.models import inspect as run_inspect

    run_inspect(models, alpha=alpha, confidence=as_confidence(confidence), as_json=json)


@app.command(help_epilogue=examples.DEMO)
def demo(
    *, rows: Whole = 8192, features: Whole = 2048, sketch_size: Whole = 128, alpha: float = 32768.0
) -> None:
    """Stream the paper's HR data through its algorithms and ours, beside exact ridge.

    Parameters
    ----------
    rows
        Rows to stream.
    features
        Columns.
    sketch_size
        Rows of the sketches.
    alpha
        The ridge parameter.
    """
    from ridgepass.demo import run_demo

    run_demo(rows, features, sketch_size, alpha)


def run(tokens: Sequence[str]) -> int:
    """Run one command and return its exit code: 0, 2 for bad input, 130 if interrupted."""
    warnings.showwarning = _warn
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever called
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - as long as the process
    given = [DASH if token == "-" else token for token in tokens]
    try:
        app(given, exit_on_error=False, print_error=False, result_action="return_value")
    except (KeyboardInterrupt, StopRequestedError) as error:
        say(f"ridgepass: {str(error) or 'interrupted'}")
        return 130
    except BrokenPipeError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for what is still in the buffer
        if error.filename is not None:  # a file that was asked for is not complete
            return _fail(f"{error.filename}: the reader closed the pipe before all was written")
        return 1  # whoever read the output has seen enough
    except MemoryError:
        return _fail("not enough memory: lower --sketch-size, or set a budget with --memory")
    except CycloptsError as error:
        return _fail(f"{error} (ridgepass --help tells more)")
    except (ValueError, TypeError, OSError, ImportError) as error:
        if os.environ.get("RIDGEPASS_DEBUG"):
            for line in traceback.format_exc().splitlines():
                say(line)
        return _fail(_message(error))
    return 0


def _fail(message: str) -> int:
    text = " ".join(message.replace(DASH, "-").split())
    if len(text) > _LONGEST:  # some name or value is: the rest says what is wrong, and what to do
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
    say(f"ridgepass: error: {text}")
    return 2


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # files have their names
        return f"standard output: {error.strerror}"
    # Which estimator it was is nothing that a user of the command knows of.
    return re.sub(r"(^|: )StreamingRidge\w*: ", r"\1", str(error))


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"ridgepass: warning: {' '.join(str(message).split())}")
