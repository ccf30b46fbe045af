// A picture as marks in the order in which they are painted. The origin is the upper left corner, y grows downwards;
// lengths are points, colours 0xRRGGBB.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dtrain::plot {

using Color = std::uint32_t;

struct Point {
  double x = 0, y = 0;
};
struct Area {
  Point from, to;  // opposite corners
  Color color = 0;
};
struct Line {
  std::vector<Point> points;
  Color color = 0;
  double width = 1;
};
struct Dot {
  Point at;
  double radius = 1;
  Color color = 0;
};
enum class Anchor { start, middle, end };
struct Label {
  Point at;  // of the baseline
  std::string text;
  double size = 12;
  Color color = 0;
  Anchor anchor = Anchor::start;
};
using Mark = std::variant<Area, Line, Dot, Label>;

struct Drawing {
  double width = 0, height = 0;
  std::vector<Mark> marks;
};

// SVG 1.1.
std::string to_svg(const Drawing& drawing);
// Whether a file that begins so is of to_svg(), by its first line, which is shorter than 512 bytes.
bool is_own_svg(std::string_view beginning);

}  // namespace dtrain::plot
