// Curves of millions of points as the few that a screen shows.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "plot/step_columns.hpp"

namespace dtrain::board {

enum class Axis { steps, epochs, time };

struct Window {
  Axis axis = Axis::steps;
  double from = -std::numeric_limits<double>::infinity(), to = std::numeric_limits<double>::infinity();
  std::size_t points = 800;  // at most
};

// Lines of the file that follow each other, from `first` up to `last`.
struct Rows {
  std::size_t first = 0, last = 0;
};

// From the first row inside the window to the last one, with a neighbour on either side so that a curve leaves the
// picture and does not end in it.
Rows rows_of(const plot::StepColumns& steps, const Window& window);

struct LevelPoint {
  double x = 0;
  double mean = 0, low = 0, high = 0;  // of the values that are finite; NaN: there is none
  std::size_t count = 0;               // of rows
};
// Neighbouring rows share a point, equally many each.
std::vector<LevelPoint> level_of(const plot::StepColumns& steps, std::span<const double> values, Axis axis, Rows rows,
                                 std::size_t points);

struct Levels {
  std::size_t rows = 0;  // of the whole run
  Rows range;            // that the points show
  bool single = false;   // each point is one row
  struct Column {
    std::string name;
    std::vector<LevelPoint> points{};
  };
  std::vector<Column> columns{};  // of equally many points at the same places
};
Levels levels_of(const plot::StepColumns& steps, const Window& window);

// {"rows", "first", "last", "x": [...], "count": [...], "columns": {"loss": {"mean": [...], "low", "high"}}}, as text:
// low and high are left out where each point is one row. The value of one row has all the digits of the file.
std::string levels_json(const Levels& levels);

// The number with all its digits, or null; with nine digits for means and what is computed.
void append_number(std::string& text, double value);
void append_rounded(std::string& text, double value);

}  // namespace dtrain::board
