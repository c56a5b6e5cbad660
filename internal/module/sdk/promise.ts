// Promises without the wait. To wait for what is settled, or no promise at all,
// takes the runtime longer than most checks do.

export type Maybe<T> = T | PromiseLike<T>;

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

let last: { promise: Promise<unknown>; value: unknown } | undefined;

// settled is a promise of what f returns or throws. What the last one came to is
// known to `after`.
export function settled<T>(f: () => T): Promise<T> {
  try {
    const value = f();
    const promise = Promise.resolve(value);
    last = isPromise(value) ? undefined : { promise, value };
    return promise as Promise<T>;
  } catch (thrown) {
    return Promise.reject(thrown);
  }
}

// after calls then with what value comes to, at once where that is known.
export function after<R>(value: unknown, then: (value: unknown) => Maybe<R>): Maybe<R> {
  if (!isPromise(value)) return then(value);
  if (last !== undefined && last.promise === value) return then(last.value);
  return Promise.resolve(value).then(then);
}
