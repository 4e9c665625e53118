"""Access to the JVM of a session: its classes and methods, and conversions of values."""

import functools
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

from deltalog._internal import UnsupportedFeatureError
from deltalog.spark.jvm.jars import driver_classes

_PYTHON_UTILS = "org.apache.spark.api.python.PythonUtils"
_CONVERTERS = "scala.jdk.javaapi.CollectionConverters"


class _Type:
    """A Java class whose members are looked up once."""

    def __init__(self, java_class: Any) -> None:
        self._class = java_class

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._class, name)
        setattr(self, name, member)
        return member

    def __call__(self, *arguments: Any) -> Any:
        return self._class(*arguments)


class Jvm:
    """The JVM of an application, accessed through py4j."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self.root = gateway.jvm
        # Objects found by reflection. They are cached because each step of a lookup is a round trip to the JVM.
        self._types: dict[str, _Type] = {}
        self._classes: dict[str, Any] = {}
        self._members: dict[tuple[object, ...], Any] = {}

    @classmethod
    def of(cls, spark: Any) -> "Jvm":
        """Returns the JVM of a classic session, with the cached lookups of its application."""
        context = spark.sparkContext
        known = _of_contexts.get(context)
        if known is None:
            known = _of_contexts[context] = cls(context._gateway)
        return known

    @functools.cached_property
    def classes(self) -> Any:
        """The object `DriverClasses` in the JVM. Raises `ClassesError` if this installation has no Java classes."""
        return driver_classes(self.gateway)

    def java(self, name: str) -> Any:
        """Returns a class of the application by its full name, for its static members and its constructor."""
        if name not in self._types:
            found = self.root
            for part in name.split("."):
                found = getattr(found, part)
            self._types[name] = _Type(found)
        return self._types[name]

    @property
    def functions(self) -> Any:
        """Spark's `functions` class, with its functions for columns."""
        return self.java("org.apache.spark.sql.functions")

    def class_of(self, name: str) -> Any:
        """Returns a class of this package by its simple name.

        Raises `UnsupportedFeatureError` if the build of Spark lacks what the class needs.
        """
        if name not in self._classes:
            found = self.classes.type(name)
            if found is None:
                raise UnsupportedFeatureError(self.static("FeatureGroup", "refusal", name))
            self._classes[name] = found
        return self._classes[name]

    def new(self, name: str, *arguments: Any) -> Any:
        """Creates an object of a class of this package."""
        if (name,) not in self._members:
            self._members[name,] = self._reflection.constructor(self.class_of(name))
        return self._reflection.call(self._members[name,], *arguments)

    def static(self, name: str, method: str, *arguments: Any) -> Any:
        """Calls a static method of a class of this package."""
        key = (name, method, len(arguments))
        if key not in self._members:
            self._members[key] = self._reflection.method(self.class_of(name), method, len(arguments))
        return self._reflection.call(self._members[key], *arguments)

    @functools.cached_property
    def _reflection(self) -> Any:
        """The object through which Python reaches the classes of this package, because py4j does not find them by
        name.
        """
        return self.classes.reflection()

    def seq(self, items: Iterable[Any]) -> Any:
        return self.java(_PYTHON_UTILS).toSeq(list(items))

    def some(self, value: Any) -> Any:
        """Returns a Scala `Option`, which is empty for None."""
        return self.java("scala.Option").apply(value)

    def scala_map(self, items: Mapping[str, Any]) -> Any:
        return self.java(_PYTHON_UTILS).toScalaMap(dict(items))

    def sequence(self, scala_seq: Any) -> list[Any]:
        """Converts a Scala sequence."""
        return self.items(self.java(_CONVERTERS).asJava(scala_seq))

    def items(self, java_list: Any) -> list[Any]:
        """Converts a Java collection. py4j's own iterator is not used, because it ends with a Java exception, which is
        slow.
        """
        return list(java_list.toArray())

    def struct(self, schema_json: str) -> Any:
        """Returns a `StructType` from its JSON form."""
        return self.java("org.apache.spark.sql.types.DataType").fromJson(schema_json)


_of_contexts: "weakref.WeakKeyDictionary[Any, Jvm]" = weakref.WeakKeyDictionary()
