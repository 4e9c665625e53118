"""The interfaces through which Java calls Python agree with the Python classes that implement them."""

import inspect
from typing import Any

import pytest
from pyspark.sql import SparkSession

from deltalog.spark.bridge import ROLES, python_name
from deltalog.spark.bridge.role import Role
from deltalog.spark.jvm import Jvm


def methods(role: type[Role]) -> dict[str, int]:
    """Returns the public methods of a Python class, each with its number of parameters."""
    found = inspect.getmembers(role, inspect.isfunction)
    return {
        name: len(inspect.signature(function).parameters) - 1
        for name, function in found
        if not name.startswith("_")
    }


def interfaces(jvm: Jvm) -> dict[str, Any]:
    """Returns the interfaces that the methods of Java's `Bridge` return, by the methods' names."""
    returned = [method.getReturnType() for method in jvm.class_of("Bridge").getMethods()]
    return {str(kind.getSimpleName()): kind for kind in returned if kind.isInterface()}


def test_each_role_has_a_java_interface(spark: SparkSession) -> None:
    found = interfaces(Jvm(spark.sparkContext._gateway))
    assert sorted(found) == sorted(role.__name__ for role in ROLES)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_the_methods_of_its_interface(spark: SparkSession, role: type[Role]) -> None:
    declared = list(Jvm(spark.sparkContext._gateway).class_of(role.__name__).getMethods())
    names = [str(method.getName()) for method in declared]
    assert len(set(names)) == len(names), "Python cannot tell methods of one name apart"
    parameters = [int(method.getParameterCount()) for method in declared]
    assert dict(zip(map(python_name, names), parameters, strict=True)) == methods(role)
