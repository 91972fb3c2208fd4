/* Documents are parsed strictly: nothing is guessed, nothing unknown is allowed, no key may come twice.
 * JSON.parse would keep the last of two equal keys, and forget whether a number was written as a whole one. */
import { InputError, quoted } from "./errors.js";

/** A number as it was written. */
export class Numeral {
  constructor(readonly text: string) {}
  get value(): number {
    return Number(this.text);
  }
  get isWhole(): boolean {
    return /^-?[0-9]+$/.test(this.text);
  }
}

export type Json = null | boolean | string | Numeral | Json[] | Map<string, Json>;

const MOST_DEPTH = 60;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS = new Map<string, null | boolean>([["null", null], ["true", true], ["false", false]]);

class Parser {
  private at = 0;
  constructor(private readonly text: string, private readonly label: string) {}

  whole(): Json {
    const value = this.value(0);
    this.match(SPACE);
    if (this.at < this.text.length) throw this.fault("more follows");
    return value;
  }

  private value(depth: number): Json {
    if (depth > MOST_DEPTH) throw this.fault("it is nested too deeply");
    this.match(SPACE);
    const letter = this.text[this.at];
    if (letter === "{") return this.table(depth);
    if (letter === "[") return this.items("]", () => this.value(depth + 1));
    if (letter === '"') return this.string();
    for (const [word, value] of WORDS) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    const number = this.match(NUMBER);
    if (!number) throw this.fault("no value");
    if (!Number.isFinite(Number(number))) throw this.fault("a number is too large");
    return new Numeral(number);
  }

  private table(depth: number): Map<string, Json> {
    const table = new Map<string, Json>();
    this.items("}", () => {
      this.match(SPACE);
      const key = this.string();
      this.match(SPACE);
      this.expect(":");
      if (table.has(key)) throw this.fault("a key is given twice");
      table.set(key, this.value(depth + 1));
    });
    return table;
  }

  private items<T>(end: string, read: () => T): T[] {
    this.at += 1;
    const found: T[] = [];
    this.match(SPACE);
    if (this.text[this.at] === end) this.at += 1;
    else {
      for (;;) {
        found.push(read());
        this.match(SPACE);
        if (this.text[this.at] === end) break;
        this.expect(",");
      }
      this.at += 1;
    }
    return found;
  }

  private string(): string {
    const written = this.match(STRING);
    if (!written) throw this.fault("no text");
    const text = JSON.parse(written) as string;
    if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text)) {
      throw this.fault("a text holds half a character (a lone surrogate)");
    }
    return text;
  }

  private expect(letter: string): void {
    if (this.text[this.at] !== letter) throw this.fault(`${letter} is missing`);
    this.at += 1;
  }

  private match(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.at += found.length;
    return found;
  }

  private fault(reason: string): InputError {
    return new InputError(`${this.label} cannot be parsed: ${reason}, at character ${this.at}.`);
  }
}

/** Parse a JSON text, strictly. */
export const parse = (text: string, label: string): Json => new Parser(text, label).whole();

/** A table of a document: every key is read by its type, and none may be left over. */
export class Table {
  private readonly seen = new Set<string>();

  constructor(private readonly map: ReadonlyMap<string, Json>, readonly label: string) {}

  static of(value: Json, label: string): Table {
    if (!(value instanceof Map)) throw new InputError(`${label} must hold a table of named values.`);
    return new Table(value, label);
  }

  has(key: string): boolean {
    return this.map.has(key) && this.map.get(key) !== null;
  }

  get keys(): string[] {
    return [...this.map.keys()];
  }

  /** Raise if the table has a key that nobody has read. */
  done(): void {
    const [left] = this.keys.filter((key) => !this.seen.has(key));
    if (left !== undefined) throw new InputError(`${this.label}: there is no key ${quoted(left)}; it has ${[...this.seen].join(", ")}.`);
  }

  raw(key: string): Json {
    this.seen.add(key);
    const value = this.map.get(key);
    if (value === undefined) throw this.fault(key, "it is missing");
    return value;
  }

  text(key: string): string {
    const value = this.raw(key);
    if (typeof value !== "string") throw this.fault(key, "it must be a text");
    return value;
  }

  choice<T extends string>(key: string, known: readonly T[]): T {
    const text = this.text(key);
    const found = known.find((item) => item === text);
    if (found === undefined) throw this.fault(key, `it must be one of ${known.join(", ")}, got ${quoted(text)}`);
    return found;
  }

  whole(key: string, least: number, most: number): number {
    const value = this.raw(key);
    if (!(value instanceof Numeral) || !value.isWhole) throw this.fault(key, "it must be a whole number");
    if (!Number.isSafeInteger(value.value) || value.value < least || value.value > most) {
      throw this.fault(key, `it must be from ${least} to ${most}, got ${value.text}`);
    }
    return value.value;
  }

  number(key: string): number {
    const value = this.raw(key);
    if (!(value instanceof Numeral)) throw this.fault(key, "it must be a number");
    return value.value;
  }

  flag(key: string): boolean {
    const value = this.raw(key);
    if (typeof value !== "boolean") throw this.fault(key, "it must be true or false");
    return value;
  }

  list(key: string): Json[] {
    const value = this.raw(key);
    if (!Array.isArray(value)) throw this.fault(key, "it must be a list");
    return value;
  }

  texts(key: string): string[] {
    return this.list(key).map((item) => {
      if (typeof item !== "string") throw this.fault(key, "it must be a list of texts");
      return item;
    });
  }

  wholes(key: string, least: number, most: number): number[] {
    return this.list(key).map((item, i) => new Table(new Map([[`${key}.${i}`, item]]), this.label).whole(`${key}.${i}`, least, most));
  }

  table(key: string): Table {
    return Table.of(this.raw(key), `${this.label}: ${key}`);
  }

  tables(key: string): Table[] {
    return this.list(key).map((item, i) => Table.of(item, `${this.label}: ${key}.${i}`));
  }

  /** Read a key that may be left out, or be null. */
  maybe<T>(key: string, read: (key: string) => T, otherwise: T): T {
    this.seen.add(key);
    return this.has(key) ? read(key) : otherwise;
  }

  /** Check the version of a document: from 1 to the newest that is known. */
  version(newest: number, noun: string): number {
    this.seen.add("version");
    const stated = this.map.get("version");
    if (!(stated instanceof Numeral) || !stated.isWhole || stated.value < 1) {
      throw new InputError(`${this.label} is no ${noun}: it must have a version of ${newest} or less.`);
    }
    if (stated.value > newest) {
      throw new InputError(`${this.label} is a ${noun} of version ${stated.text}; this client reads up to version ${newest}.`);
    }
    return stated.value;
  }

  fault(key: string, what: string): InputError {
    return new InputError(`${this.label}: ${key}: ${what}.`);
  }
}
