"""The server through which the JVM calls Python.

This package starts its own server, because the one that PySpark starts accepts calls from every user of the
machine. Here each connection starts with a token. The server also has its own pool of objects, because PySpark's server
(which `foreachBatch` starts, for example) gives its callers access to all objects in its pool. `PythonCalls.java` is
the client.
"""

import os
import secrets
import threading
from collections.abc import Callable
from typing import Any

from deltalog.spark.jvm import Jvm

# The id of the object that the JVM calls.
_TARGET = "deltalog"


def serve(jvm: Jvm, bridge: Any) -> Any:
    """Starts the server, which passes all calls of the JVM to `bridge.call(role, method, *arguments)`.

    Returns its client in the JVM, a `PythonCalls`.
    """
    # Imported here because py4j is missing in installations that are only for Spark Connect.
    from py4j.clientserver import PythonParameters, PythonServer
    from py4j.java_gateway import GatewayProperty, JavaObject, PythonProxyPool

    from deltalog.spark.jvm.connections import thread_client

    gateway = jvm.gateway
    client = thread_client(gateway._gateway_client)
    shared = gateway.gateway_property
    properties = GatewayProperty(shared.auto_field, PythonProxyPool(), shared.enable_memory_management)
    properties.pool.put(bridge, force_id=_TARGET)
    token = secrets.token_hex(32)
    parameters = PythonParameters(
        port=0, daemonize=True, daemonize_connections=True, eager_load=True, auth_token=token
    )
    server = PythonServer(client, gateway.gateway_parameters, parameters, properties)
    server.start()
    java_server = JavaObject("GATEWAY_SERVER", client)
    return jvm.new("PythonCalls", java_server, server.get_listening_port(), token, _TARGET, os.getpid())


_answered = threading.local()


def answer(failed: Callable[[BaseException], Any], serve: Any, *arguments: Any) -> Any:
    """Executes one call and returns its value. An exception is not raised but passed to `failed`, whose result is
    returned.

    Interrupts are also passed to `failed`, because the JVM must first release the resources of the interrupted
    statement.
    """
    try:
        value = serve(*arguments)
    except BaseException as error:  # noqa: BLE001 (py4j must not see an exception)
        value = failed(error)
    # The JVM refers to an object by an id, which is only valid as long as Python holds the object. So the value is kept
    # until the next answer of this thread.
    _answered.value = value
    return value
