package io.deltalog.spark;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Checks that a jar of deltalog fits a build of Spark for which it was not compiled.
 *
 * <p>The jar contains a list of all external symbols to which its classes refer. Each symbol must
 * exist with the same types. In addition, deltalog's classes must implement all abstract methods of
 * the classes and interfaces that they extend.
 *
 * <p>The list has a section for each group of features, which begins with its name ("group name")
 * and the classes of deltalog that belong to it ("own a.b.C"). Then comes a line for each class
 * that they need ("class a.b.C", "interface a.b.C", or "type a.b.C" if its kind does not matter),
 * followed by lines for its members ("field name descriptor", "method name descriptor").
 */
final class LinkCheck {
  static final String SYMBOLS = "META-INF/deltalog-spark-symbols";

  /** The group that all others depend on. */
  private static final String FIRST = "read";

  private final ClassLoader loader;
  private final String jar;
  private final Map<Class<?>, Set<String>> members = new HashMap<>();
  private final Map<String, List<String>> missing = new LinkedHashMap<>();
  private final Map<String, Set<String>> owners = new HashMap<>();

  /** Creates the check of a jar. The class loader finds the classes of the jar and of Spark. */
  LinkCheck(ClassLoader loader, String jar) {
    this.loader = loader;
    this.jar = jar;
  }

  /** Returns the missing symbols of Spark for each feature group that needs any of them. */
  Map<String, List<String>> missing() throws IOException {
    try (JarFile opened = new JarFile(jar)) {
      checkSymbols(opened);
      opened.stream()
          .map(JarEntry::getName)
          .filter(name -> name.endsWith(".class"))
          .forEach(this::checkOwn);
    }
    return missing;
  }

  /** Returns the groups of this package's classes, by the name of the class. */
  Map<String, Set<String>> owners() {
    return owners;
  }

  private void note(String group, String symbol) {
    // The text of an error may have several lines, but each group is reported in a single line.
    String line = symbol.replaceAll("\\s+", " ");
    missing.computeIfAbsent(group, name -> new ArrayList<>()).add(line);
  }

  private void checkSymbols(JarFile opened) throws IOException {
    try (BufferedReader lines =
        new BufferedReader(
            new InputStreamReader(
                opened.getInputStream(opened.getEntry(SYMBOLS)), StandardCharsets.UTF_8))) {
      String group = FIRST;
      Class<?> type = null;
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        int space = line.indexOf(' ');
        String kind = line.substring(0, space);
        String symbol = line.substring(space + 1);
        if (kind.equals("group")) {
          group = symbol;
        } else if (kind.equals("own")) {
          owners.computeIfAbsent(symbol, name -> new HashSet<>()).add(group);
        } else if (!kind.equals("field") && !kind.equals("method")) {
          type = found(group, kind, symbol);
        } else if (type != null && !members(type).contains(symbol)) {
          note(
              group,
              type.getName()
                  + "."
                  + (kind.equals("field") ? name(symbol) : symbol.replace(" ", "")));
        }
      }
    }
  }

  private static String name(String symbol) {
    return symbol.substring(0, symbol.indexOf(' '));
  }

  /** Returns a class, or null after recording that it is missing. */
  private Class<?> found(String group, String kind, String name) {
    try {
      Class<?> type = Class.forName(name, false, loader);
      if (kind.equals("type") || type.isInterface() == kind.equals("interface")) {
        members(type);
        return type;
      }
      note(group, "the " + kind + " " + name);
    } catch (ClassNotFoundException e) {
      note(group, name);
    } catch (LinkageError e) {
      note(group, e + " in " + name);
    }
    return null;
  }

  /**
   * Returns the members of a class and of everything that it extends and implements, in the form of
   * the list.
   */
  private Set<String> members(Class<?> type) {
    Set<String> known = members.get(type);
    if (known != null) {
      return known;
    }
    Set<String> all = new HashSet<>();
    for (Class<?> inherited : type.getInterfaces()) {
      all.addAll(members(inherited));
    }
    if (type.getSuperclass() != null) {
      all.addAll(members(type.getSuperclass()));
    } else if (type.isInterface()) {
      all.addAll(members(Object.class));
    }
    all.removeIf(member -> member.startsWith("<init>"));
    addDeclared(type, all);
    members.put(type, all);
    return all;
  }

  private static void addDeclared(Class<?> type, Set<String> all) {
    for (Field field : type.getDeclaredFields()) {
      if (!Modifier.isPrivate(field.getModifiers())) {
        all.add(field.getName() + " " + field.getType().descriptorString());
      }
    }
    for (Method method : type.getDeclaredMethods()) {
      if (!Modifier.isPrivate(method.getModifiers())) {
        all.add(
            method.getName()
                + " "
                + descriptor(method.getReturnType(), method.getParameterTypes()));
      }
    }
    for (Constructor<?> constructor : type.getDeclaredConstructors()) {
      if (!Modifier.isPrivate(constructor.getModifiers())) {
        all.add("<init> " + descriptor(void.class, constructor.getParameterTypes()));
      }
    }
  }

  private static String descriptor(Class<?> returned, Class<?>[] parameters) {
    return MethodType.methodType(returned, parameters).descriptorString();
  }

  /** Records the abstract methods that a class of this package does not implement. */
  private void checkOwn(String file) {
    String name = file.substring(0, file.length() - ".class".length()).replace('/', '.');
    try {
      Class<?> type = Class.forName(name, false, loader);
      if (Modifier.isAbstract(type.getModifiers())) {
        return;
      }
      for (Method method : type.getMethods()) {
        if (Modifier.isAbstract(method.getModifiers())) {
          noteForAll(name, "an implementation of " + method + " in " + name);
        }
      }
    } catch (ClassNotFoundException | LinkageError e) {
      noteForAll(name, e + " in " + name);
    }
  }

  /** Records a missing symbol for the groups of the class that needs it. */
  private void noteForAll(String own, String symbol) {
    owners.getOrDefault(own, Set.of(FIRST)).forEach(group -> note(group, symbol));
  }
}
