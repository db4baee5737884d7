// sums holds the values of every metric, by name.
export const values = {};

class Metric {
  constructor(name) {
    this.name = name;
    values[name] = [];
  }

  add(value) {
    values[this.name].push(Number(value));
  }
}

export { Metric as Counter, Metric as Rate, Metric as Trend };
