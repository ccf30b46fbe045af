#include "draw_objects.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include <dtrain/base/error.hpp>

#include "drawing_raster.hpp"
#include "plot_style.hpp"

namespace dtrain::plot {
namespace {

constexpr std::array<Color, 7> kObjectColors{kOrange, kSkyBlue, kGreen, kYellow, kVermilion, kPurple, kBlue};
constexpr double kMaskShare = 0.42;  // of the colour in a pixel that a mask covers

Color color_of(const ShownObject& object) {
  const auto count = static_cast<std::int32_t>(kObjectColors.size());
  return kObjectColors[static_cast<std::size_t>((object.label % count + count) % count)];
}

// Black or white, whichever is easier to read on the colour.
Color ink_on(Color color) {
  const double red = color >> 16 & 0xFF, green = color >> 8 & 0xFF, blue = color & 0xFF;
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? 0x000000 : 0xFFFFFF;
}

void tint(std::uint8_t* pixel, Color color, double share) {
  for (int c = 0; c < 3; ++c) {
    const double wanted = color >> (16 - 8 * c) & 0xFF;
    pixel[c] = static_cast<std::uint8_t>(pixel[c] + (wanted - pixel[c]) * share + 0.5);
  }
}

// The mask in the object's colour, its outermost pixels stronger.
void draw_mask(const ShownObject& object, const ShownAt& at, data::Image& picture) {
  const int w = object.mask_width, h = static_cast<int>(std::ssize(object.mask)) / std::max(1, w);
  const auto inside = [&](int y, int x) {
    return y >= 0 && y < h && x >= 0 && x < w && object.mask[static_cast<std::size_t>(y * w + x)] != 0;
  };
  const Color color = color_of(object);
  for (int y = 0; y < h; ++y) {
    for (int x = 0; x < w; ++x) {
      if (!inside(y, x)) continue;
      const bool edge = !inside(y - 1, x) || !inside(y + 1, x) || !inside(y, x - 1) || !inside(y, x + 1);
      for (int i = 0; i < at.zoom * at.zoom; ++i) {
        const int row = at.top + y * at.zoom + i / at.zoom, column = at.left + x * at.zoom + i % at.zoom;
        if (row < 0 || row >= picture.h || column < 0 || column >= picture.w) continue;
        tint(&picture.pixels[3 * (static_cast<std::size_t>(row) * static_cast<std::size_t>(picture.w) +
                                  static_cast<std::size_t>(column))],
             color, edge ? 0.9 : kMaskShare);
      }
    }
  }
}

struct Corners {
  double left, top, right, bottom;
};

Corners corners_of(const ShownObject& object, const ShownAt& at) {
  const data::PixelBox& box = object.box;
  return {at.left + box.left * at.zoom, at.top + box.top * at.zoom, at.left + (box.left + box.width) * at.zoom,
          at.top + (box.top + box.height) * at.zoom};
}

// A line from corner to corner, in pieces where it is dashed.
void add_edge(Point from, Point to, bool dashed, Color color, double width, std::vector<Mark>& marks) {
  constexpr double kDash = 7;
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  const int pieces = dashed ? std::max(1, static_cast<int>(length / kDash)) | 1 : 1;
  for (int i = 0; i < pieces; i += 2) {
    const auto point = [&](double share) {
      return Point{from.x + share * (to.x - from.x), from.y + share * (to.y - from.y)};
    };
    marks.push_back(
        Line{{point(static_cast<double>(i) / pieces), point(static_cast<double>(i + 1) / pieces)}, color, width});
  }
}

// Coloured edges on a dark line, so that they are seen on any ground.
void add_box(const ShownObject& object, const Corners& box, double width, std::vector<Mark>& marks) {
  const std::array<Point, 5> corners{{{box.left, box.top},
                                      {box.right, box.top},
                                      {box.right, box.bottom},
                                      {box.left, box.bottom},
                                      {box.left, box.top}}};
  for (const auto& [color, wide] : {std::pair{Color{0}, width + 1.2}, std::pair{color_of(object), width}}) {
    for (std::size_t i = 0; i + 1 < corners.size(); ++i)
      add_edge(corners[i], corners[i + 1], object.crowd, color, wide, marks);
  }
}

// Over the box's upper edge, or below it where that would leave the picture.
void add_name(const ShownObject& object, const Corners& box, double size, double width, const Corners& room,
              std::vector<Mark>& marks) {
  const double height = size * 1.3, across = width + size * 0.6;
  const double left = std::clamp(box.left - 1, room.left, std::max(room.left, room.right - across));
  const double top = box.top - height >= room.top
                         ? box.top - height
                         : std::clamp(box.top, room.top, std::max(room.top, room.bottom - height));
  marks.push_back(Area{{left, top}, {left + across, top + height}, color_of(object)});
  marks.push_back(Label{{left + size * 0.3, top + height - size * 0.33}, object.text, size, ink_on(color_of(object))});
}

}  // namespace

void draw_objects(std::span<const ShownObject> objects, const ShownAt& at, data::Image& picture) {
  DTRAIN_CHECK(picture.c == 3, "boxes have colours");
  std::vector<const ShownObject*> order;
  for (const ShownObject& object : objects) order.push_back(&object);
  std::ranges::stable_sort(order, std::greater{}, [](const ShownObject* object) { return object->box.area(); });
  for (const ShownObject* object : order) draw_mask(*object, at, picture);
  const double high = at.height > 0 ? at.height : picture.h, wide = at.width > 0 ? at.width : picture.w;
  const Corners room{static_cast<double>(at.left), static_cast<double>(at.top), at.left + wide, at.top + high};
  const double size = std::clamp(std::min(high, wide) / 34, 10.0, 22.0);
  const double width = std::clamp(std::min(high, wide) / 200, 2.0, 4.0);
  std::vector<std::string> texts;
  for (const ShownObject* object : order) texts.push_back(object->text);
  const std::vector<double> widths = text_widths(texts, size);
  std::vector<Mark> marks;
  for (const ShownObject* object : order) add_box(*object, corners_of(*object, at), width, marks);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!texts[i].empty()) add_name(*order[i], corners_of(*order[i], at), size, widths[i], room, marks);
  }
  paint_over(marks, picture);
}

}  // namespace dtrain::plot
