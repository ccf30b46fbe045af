#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string_view>

#include <dtrain/base/json.hpp>

#include "drawing.hpp"

namespace dtrain::plot {
namespace {

// The first line begins and ends so.
constexpr std::string_view kBegin = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"";
constexpr std::string_view kEnd = "font-family=\"DejaVu Sans, Verdana, sans-serif\">";

// XML must be UTF-8. Json::dump() replaces bytes that are not.
std::string without_stray_bytes(const std::string& text) { return Json::parse(Json(text).dump(), "text").as_string(); }

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : without_stray_bytes(text)) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else if (static_cast<unsigned char>(c) >= ' ') {
      safe += c;
    }
  }
  return safe;
}

class SvgWriter {
 public:
  explicit SvgWriter(std::string& out) : out_(out) {}

  void operator()(const Area& area) {
    add(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="#{:06x}"/>)", area.from.x, area.from.y,
        area.to.x - area.from.x, area.to.y - area.from.y, area.color);
  }
  void operator()(const Line& line) {
    std::string points;
    for (const Point& point : line.points)
      fmt::format_to(std::back_inserter(points), "{:.1f},{:.1f} ", point.x, point.y);
    add(R"(<polyline points="{}" fill="none" stroke="#{:06x}" stroke-width="{}" stroke-linejoin="round"/>)", points,
        line.color, line.width);
  }
  void operator()(const Dot& dot) {
    add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}" fill="#{:06x}"/>)", dot.at.x, dot.at.y, dot.radius, dot.color);
  }
  void operator()(const Label& label) {
    constexpr std::array<const char*, 3> kAnchors = {"start", "middle", "end"};
    add(R"(<text x="{:.1f}" y="{:.1f}" font-size="{}" fill="#{:06x}" text-anchor="{}">{}</text>)", label.at.x,
        label.at.y, label.size, label.color, kAnchors[static_cast<std::size_t>(label.anchor)], escaped(label.text));
  }

 private:
  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
    out_ += '\n';
  }
  std::string& out_;
};

}  // namespace

std::string to_svg(const Drawing& drawing) {
  std::string out =
      fmt::format("{0}{1}\" height=\"{2}\" viewBox=\"0 0 {1} {2}\" {3}\n", kBegin, drawing.width, drawing.height, kEnd);
  SvgWriter writer(out);
  for (const Mark& mark : drawing.marks) std::visit(writer, mark);
  return out + "</svg>\n";
}

bool is_own_svg(std::string_view beginning) {
  const std::string_view line = beginning.substr(0, beginning.find('\n'));
  return line.starts_with(kBegin) && line.ends_with(kEnd);
}

}  // namespace dtrain::plot
