// TIFF 6.0 as cameras, scanners and image programs write photographs: the first image of the file, in strips or tiles,
// plain or compressed by LZW, deflate or PackBits; grey, RGB or with a palette, 1, 8 or 16 bits a sample.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include <dtrain/base/error.hpp>

#include "codecs.hpp"
#include "exif.hpp"
#include "tiff_bytes.hpp"

namespace dtrain::data {
namespace {

enum Tag : unsigned {
  width = 256,
  height = 257,
  bits = 258,
  compression = 259,
  photometric = 262,
  strip_offsets = 273,
  orientation = 274,
  samples = 277,
  rows_per_strip = 278,
  strip_sizes = 279,
  planes = 284,
  predictor = 317,
  palette = 320,
  tile_width = 322,
  tile_height = 323,
  tile_offsets = 324,
  tile_sizes = 325
};
enum Photometric { white_is_zero = 0, black_is_zero = 1, rgb = 2, with_palette = 3 };
constexpr std::uint64_t kMostNumbers = 1u << 20;  // of one tag
constexpr std::uint64_t kMostBytes = 1u << 30;    // of one strip or tile
// All tiles together have less than four times the picture's pixels, or it is smaller than a few of them.
constexpr std::uint64_t kMostOverhang = 4, kMostAnyway = 1u << 24;
// A part takes more bytes than it holds pixels for only where its rows are packed one by one.
constexpr std::uint64_t kMostGrowth = 8, kMostHead = 1024;

class File {
 public:
  explicit File(ByteView bytes) : bytes_(bytes), swapped_(text_of(bytes).starts_with("MM")) {
    std::uint64_t at = number(4, 4);
    const std::uint64_t entries = number(at, 2);
    at += 2;
    for (std::uint64_t i = 0; i < entries; ++i, at += 12) entries_[static_cast<unsigned>(number(at, 2))] = at;
  }

  std::vector<std::uint64_t> numbers(Tag tag) const {
    const auto found = entries_.find(tag);
    if (found == entries_.end()) return {};
    const std::uint64_t at = found->second, type = number(at + 2, 2), count = number(at + 4, 4);
    const unsigned size = type == 1 ? 1 : type == 3 ? 2 : type == 4 ? 4 : 0;  // BYTE, SHORT, LONG
    require(size > 0 && count <= kMostNumbers, "a tag is damaged");
    std::uint64_t place = count * size <= 4 ? at + 8 : number(at + 8, 4);
    std::vector<std::uint64_t> all;
    for (std::uint64_t i = 0; i < count; ++i, place += size) all.push_back(number(place, size));
    return all;
  }
  std::uint64_t number_of(Tag tag, std::uint64_t usual) const {
    const std::vector<std::uint64_t> all = numbers(tag);
    return all.empty() ? usual : all.front();
  }
  ByteView part(std::uint64_t at, std::uint64_t size) const {
    require(at <= bytes_.size() && size <= bytes_.size() - at, "the pixels are cut short");
    return bytes_.subspan(at, size);
  }
  bool is_swapped() const { return swapped_; }

  static void require(bool holds, const char* what) {
    if (!holds) throw DataError(fmt::format("TIFF: {}", what));
  }

 private:
  std::uint64_t number(std::uint64_t at, unsigned size) const {
    require(at <= bytes_.size() && size <= bytes_.size() - at, "cut short");
    std::uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i) {
      const unsigned place = swapped_ ? i : size - 1 - i;
      value = value << 8 | static_cast<std::uint64_t>(bytes_[at + place]);
    }
    return value;
  }

  ByteView bytes_;
  bool swapped_;
  std::map<unsigned, std::uint64_t> entries_;
};

struct Layout {
  std::uint64_t w = 0, h = 0, samples = 1, bits = 8, kind = 0;  // kind: Photometric
  std::uint64_t part_w = 0, part_h = 0;                         // of a strip or a tile
  std::uint64_t parts_in_row = 1, parts_in_plane = 1;
  bool planar = false;  // a part holds one sample of each pixel
  bool tiled = false;
  std::uint64_t predictor = 1, compression = 1;
  std::vector<std::uint64_t> offsets{}, sizes{}, palette{};

  std::uint64_t samples_in_part() const { return planar ? 1 : samples; }
  std::uint64_t row_bytes() const { return (part_w * samples_in_part() * bits + 7) / 8; }
};

Layout read_layout(const File& file) {
  const auto require = File::require;
  Layout layout{.w = file.number_of(width, 0), .h = file.number_of(height, 0)};
  layout.samples = file.number_of(samples, 1);
  layout.bits = file.number_of(bits, 1);
  layout.kind = file.number_of(photometric, black_is_zero);
  layout.planar = file.number_of(planes, 1) == 2 && layout.samples > 1;
  layout.predictor = file.number_of(predictor, 1);
  layout.compression = file.number_of(compression, 1);
  layout.palette = file.numbers(palette);
  layout.tiled = !file.numbers(tile_offsets).empty();
  layout.offsets = file.numbers(layout.tiled ? tile_offsets : strip_offsets);
  layout.sizes = file.numbers(layout.tiled ? tile_sizes : strip_sizes);
  layout.part_w = layout.tiled ? file.number_of(tile_width, 0) : layout.w;
  layout.part_h =
      layout.tiled ? file.number_of(tile_height, 0) : std::min(file.number_of(rows_per_strip, layout.h), layout.h);
  if (layout.kind > with_palette || (layout.bits != 1 && layout.bits != 8 && layout.bits != 16))
    throw DataError(fmt::format("TIFF: colours of kind {} with {} bits", layout.kind, layout.bits), "save it as PNG");
  require(layout.samples >= (layout.kind == rgb ? 3u : 1u) && layout.samples <= 16, "its samples make no colour");
  require(layout.bits != 1 || layout.samples == 1, "its samples make no colour");
  require(layout.kind != with_palette || (layout.bits == 8 && layout.palette.size() == 3 * 256),
          "its palette is damaged");
  require(layout.predictor <= 2 && (layout.predictor != 2 || layout.bits >= 8),
          "its pixels are predicted in an unusual way");
  require(layout.part_w > 0 && layout.part_h > 0 && layout.part_w <= kMaxPixels &&
              layout.part_h <= kMaxPixels / layout.part_w,
          "its strips or tiles are damaged");
  require(layout.row_bytes() <= kMostBytes / layout.part_h, "its strips or tiles are too large");
  layout.parts_in_row = (layout.w + layout.part_w - 1) / layout.part_w;
  layout.parts_in_plane = layout.parts_in_row * ((layout.h + layout.part_h - 1) / layout.part_h);
  const std::uint64_t parts = layout.parts_in_plane * (layout.planar ? layout.samples : 1);
  require(layout.offsets.size() >= parts && layout.sizes.size() >= parts, "its strips or tiles are damaged");
  // No overflow: kMostNumbers bounds the parts, kMaxPixels one of them.
  require(layout.parts_in_plane * layout.part_w * layout.part_h <= kMostOverhang * layout.w * layout.h + kMostAnyway,
          "its strips or tiles are much larger than the picture");
  return layout;
}

// Samples of one strip or tile as bytes, the high one of 16 bits.
std::vector<std::uint8_t> read_part(const File& file, const Layout& layout, std::uint64_t part, std::uint64_t rows) {
  const std::uint64_t size = layout.row_bytes() * rows;
  const ByteView stored = file.part(layout.offsets[part], layout.sizes[part]);
  // Blocks without content could make one part as long as the file, and all parts may be the same one.
  const ByteView needed = stored.first(std::min<std::uint64_t>(stored.size(), kMostGrowth * size + kMostHead));
  std::vector<std::uint8_t> bytes = unpack_tiff(needed, layout.compression, size);
  if (layout.predictor == 2)
    add_up_rows(bytes, layout.row_bytes(), layout.samples_in_part(), layout.bits, file.is_swapped());
  if (layout.bits == 16) {
    for (std::size_t i = 0; 2 * i + 1 < bytes.size(); ++i) bytes[i] = bytes[2 * i + (file.is_swapped() ? 0 : 1)];
    bytes.resize(bytes.size() / 2);
  }
  return bytes;
}

class Painter {
 public:
  Painter(const Layout& layout, Image& out) : layout_(layout), out_(out) {}

  void paint(const std::vector<std::uint8_t>& part, std::uint64_t number) {
    const std::uint64_t plane = number / layout_.parts_in_plane, place = number % layout_.parts_in_plane;
    const std::uint64_t left = place % layout_.parts_in_row * layout_.part_w;
    const std::uint64_t top = place / layout_.parts_in_row * layout_.part_h;
    const std::uint64_t rows = std::min(layout_.part_h, layout_.h - top);
    const std::uint64_t columns = std::min(layout_.part_w, layout_.w - left);
    const std::uint64_t step = layout_.samples_in_part(),
                        row = layout_.bits == 1 ? layout_.row_bytes() : layout_.part_w * step;
    for (std::uint64_t y = 0; y < rows; ++y) {
      for (std::uint64_t x = 0; x < columns; ++x) {
        std::uint8_t* pixel = &out_.pixels[((top + y) * layout_.w + left + x) * static_cast<std::uint64_t>(out_.c)];
        if (layout_.bits == 1) {
          set(pixel, 0, (part[y * row + x / 8] >> (7 - x % 8) & 1) != 0 ? 255 : 0);
        } else if (layout_.planar) {
          set(pixel, plane, part[y * row + x]);
        } else {
          for (std::uint64_t c = 0; c < step; ++c) set(pixel, c, part[y * row + x * step + c]);
        }
      }
    }
  }

 private:
  // Samples behind the colours, such as alpha, are left out.
  void set(std::uint8_t* pixel, std::uint64_t sample, std::uint8_t value) const {
    if (layout_.kind == with_palette) {
      if (sample > 0) return;
      for (std::size_t c = 0; c < 3; ++c) pixel[c] = static_cast<std::uint8_t>(layout_.palette[256 * c + value] >> 8);
    } else if (sample < static_cast<std::uint64_t>(out_.c)) {
      pixel[sample] = layout_.kind == white_is_zero ? static_cast<std::uint8_t>(255 - value) : value;
    }
  }

  const Layout& layout_;
  Image& out_;
};

}  // namespace

void decode_tiff(ByteView payload, Image& out) {
  const File file(payload);
  const std::uint64_t kind = file.number_of(photometric, black_is_zero);
  const std::uint64_t channels = kind == rgb || kind == with_palette ? 3 : 1;
  check_shape({channels, file.number_of(height, 0), file.number_of(width, 0)}, payload, "TIFF");
  const Layout layout = read_layout(file);
  shape_image(out, {channels, layout.h, layout.w}, payload, "TIFF");
  Painter painter(layout, out);
  const std::uint64_t parts = layout.parts_in_plane * (layout.planar ? layout.samples : 1);
  for (std::uint64_t part = 0; part < parts; ++part) {
    const std::uint64_t top = part % layout.parts_in_plane / layout.parts_in_row * layout.part_h;
    const std::uint64_t rows = layout.tiled ? layout.part_h : std::min(layout.part_h, layout.h - top);
    painter.paint(read_part(file, layout, part, rows), part);
  }
  turn_upright(out, static_cast<int>(file.number_of(orientation, 1)));
}

}  // namespace dtrain::data
