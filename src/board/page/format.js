// Numbers, times and sizes for people.

export const NONE = "\u2013";

export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

// The loss of a run's last line. One that has grown beyond all numbers is not one that was never recorded.
export function lossText(row) {
  return row.diverged ? "not finite" : short(row.loss);
}

// Few digits, for tables and axes.
export function short(value) {
  if (!isNumber(value)) return NONE;
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e12) return value.toExponential(2).replace(/\.?0+e/, "e");
  if (size >= 1e9) return trimmed(value / 1e9, 2) + "G";
  if (size >= 1e6) return trimmed(value / 1e6, 2) + "M";
  if (size >= 1e4) return trimmed(value / 1e3, 1) + "k";
  if (size >= 100) return trimmed(value, 1);
  if (size >= 1e-3) return String(Number(value.toPrecision(4)));
  return value.toExponential(2);
}

function trimmed(value, digits) {
  return String(Number(value.toFixed(digits)));
}

// All digits that the value has.
export function exact(value) {
  return isNumber(value) ? String(value) : NONE;
}

// What is not all of it is never shown as 100 %.
export function percent(value) {
  if (!isNumber(value)) return NONE;
  return (value < 1 ? Math.min(100 * value, 99.99).toFixed(2) : (100 * value).toFixed(1)) + " %";
}

export function whole(value) {
  return isNumber(value) ? Math.round(value).toLocaleString("en-US").replace(/,/g, "\u202f") : NONE;
}

export function duration(seconds) {
  if (!isNumber(seconds)) return NONE;
  if (seconds === 0) return "0 s";
  if (seconds < 0) return "\u2212" + duration(-seconds);
  if (seconds < 1) return Math.round(seconds * 1000) + " ms";
  if (seconds < 60) return trimmed(seconds, 1) + " s";
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes + " min " + Math.floor(seconds % 60) + " s";
  if (minutes < 48 * 60) return Math.floor(minutes / 60) + " h " + (minutes % 60) + " min";
  return Math.floor(minutes / 1440) + " d " + Math.floor((minutes % 1440) / 60) + " h";
}

export function bytes(size) {
  if (!isNumber(size)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (size >= 1024 && unit + 1 < units.length) {
    size /= 1024;
    unit += 1;
  }
  return trimmed(size, unit ? 1 : 0) + " " + units[unit];
}

export function money(dollars) {
  if (!isNumber(dollars)) return NONE;
  return "$" + (dollars !== 0 && dollars < 1 ? dollars.toFixed(3) : dollars.toFixed(2));
}

// Seconds since 1970 as the clock of the reader.
export function clock(seconds) {
  if (!isNumber(seconds) || seconds <= 0) return NONE;
  const date = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  return two(date.getHours()) + ":" + two(date.getMinutes()) + ":" + two(date.getSeconds());
}

export function dateAndClock(seconds) {
  if (!isNumber(seconds) || seconds <= 0) return NONE;
  const date = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  return date.getFullYear() + "-" + two(date.getMonth() + 1) + "-" + two(date.getDate()) + " " + clock(seconds);
}

// The clock of the board's machine, by which runs are old or new.
let boardAhead = 0;

export function setBoardTime(now) {
  boardAhead = now - Date.now() / 1000;
}

export function boardTime() {
  return Date.now() / 1000 + boardAhead;
}

// How long ago that is, as coarse as ago() says it.
export function secondsAgo(seconds, now) {
  if (!isNumber(seconds) || seconds <= 0) return null;
  const past = Math.max(0, now - seconds), unit = past < 60 ? 10 : past < 3600 ? 60 : past < 172800 ? 3600 : 86400;
  return Math.floor(past / unit) * unit;
}

export function ago(seconds, now) {
  const past = secondsAgo(seconds, now);
  if (past === null) return NONE;
  if (past < 10) return "now";
  if (past < 60) return past + " s ago";
  if (past < 3600) return past / 60 + " min ago";
  if (past < 172800) return past / 3600 + " h ago";
  return past / 86400 + " d ago";
}

// Hours, minutes and seconds, where duration() would say the same of different times.
function hoursText(seconds) {
  const whole = Math.floor(seconds), two = (number) => String(number).padStart(2, "0");
  const part = trimmed(seconds - whole, 3).slice(1);
  return Math.floor(whole / 3600) + ":" + two(Math.floor(whole / 60) % 60) + ":" + two(whole % 60) + part;
}

// The words at the ticks of an axis: short, unless that makes neighbours the same.
export function tickTexts(list, axis) {
  const words = list.map(axis === "time" ? duration : short);
  if (new Set(words).size === words.length) return words;
  return list.map(axis === "time" ? hoursText : (value) => String(Number(value.toPrecision(12))));
}

const MOST_TICKS = 50;

// About `count` round numbers from low to high.
export function ticks(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, count);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999) || power * 10;
  if (!Number.isFinite(step) || low + step === low) return [];
  // The number is settled first: where numbers are further apart than 1, a counter of them would stand still.
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9), list = [];
  for (let i = 0; i < Math.min(last - first + 1, MOST_TICKS); i += 1) list.push(Number(((first + i) * step).toPrecision(12)));
  return list;
}
