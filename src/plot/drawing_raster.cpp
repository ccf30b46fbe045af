// FreeType fills outlines as well as letters, is in every distribution and needs nothing but zlib, libpng
// and brotli: a general drawing library would bring a window system along. The font is built in, since a bare machine
// has none.
#include "drawing_raster.hpp"

#include <ft2build.h>

#include <freetype/freetype.h>
#include <freetype/ftoutln.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>

#include <dtrain/base/error.hpp>
#include <dtrain/base/releaser.hpp>

#include "font.hpp"

namespace dtrain::plot {
namespace {

constexpr double kUnits = 64;  // of FreeType's coordinates to a pixel
// The longest part of a line that is drawn at once. FreeType 2.12 sometimes gives up on a slanting outline that needs
// more cells than it has at hand, about two thousand.
constexpr double kLongestPixels = 200;

using Library = std::unique_ptr<FT_LibraryRec_, Releaser<FT_Done_FreeType>>;
using Face = std::unique_ptr<FT_FaceRec_, Releaser<FT_Done_Face>>;

void check(FT_Error error, const char* what) {
  if (error != 0) throw Error(std::string("cannot draw: ") + what);
}

// The code point at `at`, which moves on; anything that is no UTF-8 is taken byte by byte.
char32_t next_letter(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at++);
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
  char32_t letter = more == 0 ? first : first & (0x3Fu >> more);
  for (int i = 0; i < more && at < text.size(); ++i) letter = letter << 6 | (byte(at++) & 0x3Fu);
  return letter;
}

class Painter {
 public:
  Painter(data::Image& image, double scale) : image_(image), scale_(scale) {
    FT_Library library = nullptr;
    check(FT_Init_FreeType(&library), "no FreeType");
    library_.reset(library);
    FT_Face face = nullptr;
    const auto font = font_bytes();
    check(FT_New_Memory_Face(library, font.data(), static_cast<FT_Long>(font.size()), 0, &face), "no font");
    face_.reset(face);
  }

  void operator()(const Area& area) {
    fill({area.from, {area.to.x, area.from.y}, area.to, {area.from.x, area.to.y}}, area.color);
  }

  void operator()(const Dot& dot) { stroke(dot.at, dot.at, dot.radius, dot.color); }

  void operator()(const Line& line) {
    for (std::size_t i = 1; i < line.points.size(); ++i) {
      const Point &from = line.points[i - 1], &to = line.points[i];
      const double length = std::hypot(to.x - from.x, to.y - from.y) * scale_;
      const int pieces = std::max(1, static_cast<int>(std::ceil(length / kLongestPixels)));
      for (int piece = 0; piece < pieces; ++piece) {
        stroke(between(from, to, piece, pieces), between(from, to, piece + 1, pieces), line.width / 2, line.color);
      }
    }
  }

  double width_of(std::string_view text, double size) {
    set_size(size);
    return width_of(text);
  }

  void operator()(const Label& label) {
    set_size(label.size);
    double x = label.at.x;
    if (label.anchor != Anchor::start) x -= width_of(label.text) * (label.anchor == Anchor::end ? 1 : 0.5);
    color_ = label.color;
    for (std::size_t at = 0; at < label.text.size();) {
      load(next_letter(label.text, at));
      FT_Outline& outline = face_->glyph->outline;
      FT_Outline_Translate(&outline, units(x), units(drawing_height() - label.at.y));
      render(outline);
      x += advance();
    }
  }

 private:
  void set_size(double size) { check(FT_Set_Char_Size(face_.get(), 0, units(size), 72, 72), "a size of letters"); }
  double drawing_height() const { return image_.h / scale_; }
  FT_Pos units(double points) const { return static_cast<FT_Pos>(std::lround(points * scale_ * kUnits)); }
  // FreeType's y grows upwards.
  FT_Vector vector(const Point& point) const { return {units(point.x), units(drawing_height() - point.y)}; }

  void load(char32_t letter) {
    check(FT_Load_Char(face_.get(), letter, FT_LOAD_NO_BITMAP | FT_LOAD_NO_HINTING), "a letter");
  }
  double advance() const { return static_cast<double>(face_->glyph->linearHoriAdvance) / 65536 / scale_; }
  double width_of(std::string_view text) {
    double width = 0;
    for (std::size_t at = 0; at < text.size();) {
      load(next_letter(text, at));
      width += advance();
    }
    return width;
  }

  void fill(const std::vector<Point>& corners, Color color) {
    std::vector<FT_Vector> points;
    for (const Point& corner : corners) points.push_back(vector(corner));
    std::vector<char> tags(points.size(), FT_CURVE_TAG_ON);
    short end = static_cast<short>(points.size() - 1);
    FT_Outline outline{};
    outline.n_contours = 1;
    outline.n_points = static_cast<short>(points.size());
    outline.points = points.data();
    // The type of these two changed between versions of FreeType.
    outline.tags = reinterpret_cast<decltype(outline.tags)>(tags.data());
    outline.contours = reinterpret_cast<decltype(outline.contours)>(&end);
    color_ = color;
    render(outline);
  }

  static Point between(const Point& from, const Point& to, int part, int parts) {
    const double share = static_cast<double>(part) / parts;
    return {from.x + share * (to.x - from.x), from.y + share * (to.y - from.y)};
  }

  // With round ends, so that the pieces of a line have round corners where they meet; a dot where they are one point.
  void stroke(const Point& from, const Point& to, double radius, Color color) {
    constexpr int kCorners = 16;  // of each end
    const double direction = std::atan2(to.y - from.y, to.x - from.x);
    std::vector<Point> corners;
    for (const auto& [end, first] : {std::pair{to, direction - M_PI / 2}, std::pair{from, direction + M_PI / 2}}) {
      for (int i = 0; i <= kCorners; ++i) {
        const double angle = first + M_PI * i / kCorners;
        corners.push_back({end.x + radius * std::cos(angle), end.y + radius * std::sin(angle)});
      }
    }
    fill(corners, color);
  }

  void render(FT_Outline& outline) {
    FT_Raster_Params parameters{};
    parameters.flags = FT_RASTER_FLAG_AA | FT_RASTER_FLAG_DIRECT | FT_RASTER_FLAG_CLIP;
    parameters.clip_box = {0, 0, image_.w, image_.h};
    parameters.gray_spans = blend;
    parameters.user = this;
    check(FT_Outline_Render(library_.get(), &outline, &parameters), "an outline");
  }

  static void blend(int y, int count, const FT_Span* spans, void* user) {
    auto& painter = *static_cast<Painter*>(user);
    const int row = painter.image_.h - 1 - y;
    for (int i = 0; i < count; ++i) painter.blend(row, spans[i]);
  }

  void blend(int row, const FT_Span& span) {
    for (int x = span.x; x < span.x + span.len; ++x) {
      std::uint8_t* pixel = &image_.pixels[3 * (static_cast<std::size_t>(row) * static_cast<std::size_t>(image_.w) +
                                                static_cast<std::size_t>(x))];
      for (int channel = 0; channel < 3; ++channel) {
        const int wanted = static_cast<int>(color_ >> (16 - 8 * channel) & 0xFF);
        pixel[channel] = static_cast<std::uint8_t>(pixel[channel] + (wanted - pixel[channel]) * span.coverage / 255);
      }
    }
  }

  data::Image& image_;
  const double scale_;
  Library library_;
  Face face_;        // goes before the library
  Color color_ = 0;  // that render() paints with
};

}  // namespace

data::Image to_image(const Drawing& drawing, double scale) {
  constexpr std::uint8_t kWhite = 255;
  data::Image image{3,
                    static_cast<int>(std::lround(drawing.height * scale)),
                    static_cast<int>(std::lround(drawing.width * scale)),
                    {}};
  image.pixels.assign(static_cast<std::size_t>(image.h) * static_cast<std::size_t>(image.w) * 3, kWhite);
  Painter painter(image, scale);
  for (const Mark& mark : drawing.marks) std::visit(painter, mark);
  return image;
}

void paint_over(std::span<const Mark> marks, data::Image& picture) {
  DTRAIN_CHECK(picture.c == 3, "marks have colours");
  Painter painter(picture, 1);
  for (const Mark& mark : marks) std::visit(painter, mark);
}

std::vector<double> text_widths(std::span<const std::string> texts, double size) {
  data::Image none{3, 1, 1, {0, 0, 0}};
  Painter painter(none, 1);
  std::vector<double> widths;
  for (const std::string& text : texts) widths.push_back(painter.width_of(text, size));
  return widths;
}

}  // namespace dtrain::plot
