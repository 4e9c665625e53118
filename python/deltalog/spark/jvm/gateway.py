"""Conversions between Python and the JVM of a session."""

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from deltalog.spark.jvm.compile import PACKAGE, driver_loader


class Jvm:
    """The JVM of an application, accessed through py4j."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self.root = gateway.jvm
        self._python_utils = self.root.org.apache.spark.api.python.PythonUtils
        # What reflection found: each step of it is a round trip to the JVM.
        self._classes: dict[str, Any] = {}
        self._constructors: dict[str, Any] = {}
        self._methods: dict[tuple[str, str, int], Any] = {}

    @functools.cached_property
    def _loader(self) -> Any:
        return driver_loader(self.root)

    def class_of(self, name: str) -> Any:
        """Returns a class of this package by its simple name."""
        if name not in self._classes:
            self._classes[name] = self._loader.loadClass(f"{PACKAGE}.{name}")
        return self._classes[name]

    def new(self, name: str, *arguments: Any) -> Any:
        """Creates an object of a class of this package."""
        if name not in self._constructors:
            self._constructors[name] = self.class_of(name).getConstructors()[0]
        return self._constructors[name].newInstance(self._array(arguments))

    def static(self, name: str, method: str, *arguments: Any) -> Any:
        """Calls a static method of a class of this package.

        py4j does not find these classes by name, because they were loaded later than py4j.
        """
        key = (name, method, len(arguments))
        if key not in self._methods:
            self._methods[key] = self._find_method(*key)
        return self._methods[key].invoke(None, self._array(arguments))

    def _find_method(self, name: str, method: str, parameters: int) -> Any:
        for candidate in self.class_of(name).getMethods():
            if candidate.getName() == method and candidate.getParameterCount() == parameters:
                return candidate
        raise AttributeError(f"{name} has no static method {method} with {parameters} parameters")

    def _array(self, values: Iterable[Any]) -> Any:
        array = self.root.java.util.ArrayList()
        for value in values:
            array.add(value)
        return array.toArray()

    def seq(self, items: Iterable[Any]) -> Any:
        return self._python_utils.toSeq(list(items))

    def some(self, value: Any) -> Any:
        """Returns a Scala `Option`, which is empty for None."""
        return self.root.scala.Option.apply(value)

    def scala_map(self, items: Mapping[str, Any]) -> Any:
        return self._python_utils.toScalaMap(dict(items))

    def dictionary(self, scala_map: Any) -> dict[str, str]:
        """Converts a Scala map of strings."""
        return dict(self.root.scala.jdk.javaapi.CollectionConverters.asJava(scala_map))

    def sequence(self, scala_seq: Any) -> list[Any]:
        return list(self.root.scala.jdk.javaapi.CollectionConverters.asJava(scala_seq))

    def struct(self, schema_json: str) -> Any:
        """Returns a `StructType` from its JSON form."""
        return self.root.org.apache.spark.sql.types.DataType.fromJson(schema_json)

    def singleton(self, name: str) -> Any:
        """Returns a Scala object by its full name."""
        return self.root.java.lang.Class.forName(f"{name}$").getField("MODULE$").get(None)
