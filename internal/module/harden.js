// Runs in a module's runtime before its own script; the function that it returns
// runs after it. Until then a script may mend the language as it likes: it has
// seen no call yet. From then on the objects that the language provides are as
// they are, and no text becomes code: what an agent wrote in a call could
// otherwise reach, through a careless merge or an eval, the answers to the calls
// of others.
(function () {
  const { freeze, getPrototypeOf, getOwnPropertyDescriptor, defineProperty } = Object;
  const { ownKeys, apply } = Reflect;
  const { hasOwnProperty } = Object.prototype;
  const Refusal = EvalError, Wrong = TypeError, Any = Function;
  const world = globalThis;
  const provided = new Set();

  const add = (value) => {
    if ((typeof value === "object" || typeof value === "function") && value !== null && value !== world) provided.add(value);
  };
  for (const name of ownKeys(world)) {
    const value = world[name];
    add(value);
    if (typeof value === "function") add(value.prototype);
  }
  const kinds = [function () {}, async function () {}, function* () {}].map(getPrototypeOf);
  kinds.forEach(add);
  add(kinds[2].prototype);
  for (const it of ["", [], new Map(), new Set()].map((v) => v[Symbol.iterator]()).concat("".matchAll(/x/g))) {
    add(getPrototypeOf(it));
    add(getPrototypeOf(getPrototypeOf(it)));
  }
  add(getPrototypeOf(Int8Array));
  add(getPrototypeOf(Int8Array.prototype));
  const objects = [...provided];

  // A property of a frozen prototype cannot be assigned to on what inherits it:
  // `error.name = "…"` would throw. For the names that programs do assign, the
  // prototype gets an accessor that gives the inheritor a property of its own.
  const assignable = (proto, key) => {
    const d = getOwnPropertyDescriptor(proto, key);
    if (!d || !("value" in d) || !d.configurable) return;
    const { value, enumerable } = d;
    defineProperty(proto, key, {
      enumerable,
      configurable: false,
      get() { return value; },
      set(v) {
        if (this === proto) throw new Wrong("the objects that the language provides cannot be changed in a call");
        if (apply(hasOwnProperty, this, [key])) throw new Wrong("cannot assign to " + key);
        defineProperty(this, key, { value: v, writable: true, enumerable: true, configurable: true });
      },
    });
  };

  const refuse = (what) => function () {
    throw new Refusal(what + ": no text becomes code while a call is checked");
  };

  return function () {
    world.eval = refuse("eval");
    const replaced = refuse("Function");
    defineProperty(replaced, "prototype", { value: Any.prototype });
    world.Function = replaced;
    for (const kind of kinds) {
      defineProperty(kind, "constructor", { value: kind === Any.prototype ? replaced : refuse("a constructor of functions"), configurable: true });
    }
    for (const key of ["constructor", "toString", "valueOf", "toLocaleString", "hasOwnProperty"]) assignable(world.Object.prototype, key);
    for (const key of ["constructor", "toString"]) assignable(Any.prototype, key);
    for (const o of objects) {
      if (o instanceof Error || o === Error.prototype) {
        for (const key of ["constructor", "name", "message", "toString"]) assignable(o, key);
      }
      freeze(o);
    }
  };
})();
