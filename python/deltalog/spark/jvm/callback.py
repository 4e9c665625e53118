"""The server through which the JVM calls Python.

It belongs to this package alone, because the one that PySpark starts takes calls from every user of the
machine: here a connection begins with a token. The JVM's side is `PythonCalls.java`.
"""

import secrets
import threading
from typing import Any

from deltalog.spark.errors import UnsupportedFeatureError, keep
from deltalog.spark.jvm import Jvm

# The name of our object among those that the JVM may call.
_TARGET = "deltalog"


def check_pinned(gateway: Any) -> None:
    """Raises unless each Python thread has a JVM thread of its own.

    Otherwise the jobs of a statement would run in another thread than the statement, without its job group, its
    tags and its active session.
    """
    from py4j.clientserver import ClientServer  # not there in installations for Connect alone

    if not isinstance(gateway, ClientServer):
        raise UnsupportedFeatureError(
            "deltalog does not support PYSPARK_PIN_THREAD=false: unset it before Spark starts"
        )


def serve(jvm: Jvm, bridge: Any) -> None:
    """Sends all calls of the JVM to `bridge.call(operation, *arguments)` from now on."""
    from py4j.clientserver import PythonParameters, PythonServer
    from py4j.java_gateway import JavaObject

    gateway = jvm.gateway
    token = secrets.token_hex(32)
    parameters = PythonParameters(
        port=0, daemonize=True, daemonize_connections=True, eager_load=True, auth_token=token
    )
    server = PythonServer(
        gateway._gateway_client, gateway.java_parameters, parameters, gateway.gateway_property
    )
    gateway.gateway_property.pool.put(bridge, force_id=_TARGET)
    server.start()
    java_server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    calls = jvm.new("PythonCalls", java_server, server.get_listening_port(), token, _TARGET)
    jvm.static("Bridge", "install", calls)


_answered = threading.local()


def answer(jvm: Jvm, serve: Any, *arguments: Any) -> Any:
    """Serves one call with a value, or with the exception's stand-in, never by raising.

    An interrupt travels this way, too: the JVM must first unwind what the interrupted statement holds.
    """
    try:
        value = serve(*arguments)
    except BaseException as error:  # noqa: BLE001 (nothing may be raised across the wire)
        message = str(error) or type(error).__name__
        value = jvm.new("DeltalogException", message, keep(error))
    # The JVM finds an object by a number that is valid as long as Python holds the object.
    _answered.value = value
    return value
