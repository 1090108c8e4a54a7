"""A real Spark for the tests: one session for all of them.

It is a cluster of two executors, each a Java process with Python workers of its own, if that starts; else
threads in one Java process. `spark.sparkContext.master` says which. What Spark prints goes to a file.
"""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

MASTERS = ("local-cluster[2,1,1024]", "local[2]")

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "WARN",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.task.maxFailures": "3",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.fixture(scope="session")
def spark_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that has all that Spark prints on the driver."""
    return tmp_path_factory.mktemp("spark") / "driver.log"


@pytest.fixture(scope="session")
def spark(spark_log: Path) -> Iterator[Any]:
    """The session; a test that needs it is skipped where there is no Spark or no Java."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java to run Spark")
    with _cleared_work():
        session = _started(spark_log)
        yield session
        session.stop()


def _started(log: Path) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    for master in MASTERS:
        builder = SparkSession.builder.master(master).config("spark.local.dir", str(log.parent))
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        try:
            with _printing_to(log), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                session = builder.getOrCreate()
                assert session.range(3).count() == 3
                return session
        except Exception:
            continue
    pytest.skip("Spark does not start here")


@contextmanager
def _cleared_work() -> Iterator[None]:
    """The executors of a local cluster write beside Spark itself; what they leave there is removed."""
    import pyspark

    work = Path(os.environ.get("SPARK_HOME", Path(pyspark.__file__).parent), "work")
    before = set(work.glob("app-*"))
    yield
    for folder in set(work.glob("app-*")) - before:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _printing_to(log: Path) -> Iterator[None]:
    """A process that starts meanwhile prints its errors there, for as long as it lives."""
    before = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
