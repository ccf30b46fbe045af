#include <dtrain/data/rle.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::data {
namespace {

std::size_t pixels_of(const Rle& mask) { return static_cast<std::size_t>(mask.h) * static_cast<std::size_t>(mask.w); }

// Walks over two masks at once: step(length, in_a, in_b) for each stretch in which neither changes.
template <typename Step>
void walk_together(const Rle& a, const Rle& b, const Step& step) {
  std::size_t next_a = 0, next_b = 0;
  std::uint32_t left_a = 0, left_b = 0;
  bool in_a = true, in_b = true;  // the first run turns them
  for (;;) {
    for (; left_a == 0 && next_a < a.runs.size(); in_a = !in_a) left_a = a.runs[next_a++];
    for (; left_b == 0 && next_b < b.runs.size(); in_b = !in_b) left_b = b.runs[next_b++];
    const std::uint32_t length = std::min(left_a, left_b);
    if (length == 0) return;
    step(length, in_a, in_b);
    left_a -= length;
    left_b -= length;
  }
}

// Collects stretches into runs.
class RunWriter {
 public:
  RunWriter(int h, int w) : mask_{h, w, {}} {}
  void add(std::uint32_t length, bool inside) {
    if (inside != inside_) {
      mask_.runs.push_back(length_);
      length_ = 0;
      inside_ = inside;
    }
    length_ += length;
  }
  Rle finish() {
    mask_.runs.push_back(length_);
    return std::move(mask_);
  }

 private:
  Rle mask_;
  std::uint32_t length_ = 0;
  bool inside_ = false;
};

double side_overlap(double a_from, double a_length, double b_from, double b_length) {
  return std::min(a_from + a_length, b_from + b_length) - std::max(a_from, b_from);
}

}  // namespace

void check_runs(const Rle& mask) {
  std::uint64_t sum = 0;
  for (const std::uint32_t run : mask.runs) sum += run;
  if (sum == pixels_of(mask)) return;
  throw DataError(fmt::format("the runs of a mask cover {} pixels, and its picture of {}x{} has {}", sum, mask.h,
                              mask.w, pixels_of(mask)));
}

Rle encode_mask(std::span<const std::uint8_t> pixels, int h, int w) {
  DTRAIN_CHECK(std::ssize(pixels) == std::int64_t{h} * w, "a mask has a value for each pixel");
  RunWriter runs(h, w);
  for (int x = 0; x < w; ++x) {
    const std::uint8_t* pixel = pixels.data() + x;
    for (int y = 0; y < h; ++y, pixel += w) runs.add(1, *pixel != 0);
  }
  return runs.finish();
}

void decode_mask(const Rle& mask, std::span<std::uint8_t> pixels) {
  DTRAIN_CHECK(pixels.size() == pixels_of(mask), "a mask has a value for each pixel");
  std::ranges::fill(pixels, std::uint8_t{0});
  const auto h = static_cast<std::size_t>(mask.h), w = static_cast<std::size_t>(mask.w);
  std::size_t at = 0;
  bool inside = false;
  for (const std::uint32_t run : mask.runs) {
    const std::size_t end = std::min(at + run, pixels.size());
    for (; inside && at < end; ++at) pixels[at % h * w + at / h] = 1;
    at = end;
    inside = !inside;
  }
}

Rle empty_mask(int h, int w) { return {h, w, {static_cast<std::uint32_t>(h) * static_cast<std::uint32_t>(w)}}; }

Rle united(std::span<const Rle> masks) {
  DTRAIN_CHECK(!masks.empty(), "there is a mask");
  Rle all = masks.front();
  for (const Rle& mask : masks.subspan(1)) {
    DTRAIN_CHECK(mask.h == all.h && mask.w == all.w, "masks of one picture are of one size");
    RunWriter runs(all.h, all.w);
    walk_together(all, mask, [&](std::uint32_t length, bool in_a, bool in_b) { runs.add(length, in_a || in_b); });
    all = runs.finish();
  }
  return all;
}

std::uint64_t mask_area(const Rle& mask) {
  std::uint64_t area = 0;
  for (std::size_t i = 1; i < mask.runs.size(); i += 2) area += mask.runs[i];
  return area;
}

// Every run of 1 counts, also an empty one: what maskApi does.
PixelBox mask_box(const Rle& mask) {
  if (mask.runs.size() < 2 || mask.h == 0) return {};
  const auto h = static_cast<std::uint32_t>(mask.h);
  std::uint32_t left = static_cast<std::uint32_t>(mask.w), top = h, right = 0, bottom = 0, at = 0;
  for (std::size_t i = 0; i + 1 < mask.runs.size(); i += 2) {
    at += mask.runs[i];
    const std::uint32_t first = at;
    at += mask.runs[i + 1];
    const std::uint32_t last = at - 1;
    if (first / h < last / h) {
      top = 0;
      bottom = h - 1;
    }
    left = std::min({left, first / h, last / h});
    right = std::max({right, first / h, last / h});
    top = std::min({top, first % h, last % h});
    bottom = std::max({bottom, first % h, last % h});
  }
  return {static_cast<double>(left), static_cast<double>(top), static_cast<double>(right) - left + 1,
          static_cast<double>(bottom) - top + 1};
}

// Numbers in groups of 5 bits, the lowest first, each a letter from '0' on with 32 added where more follow. From the
// third run on a number is the difference to the run before the last one.
std::string text_of_runs(const Rle& mask) {
  std::string text;
  for (std::size_t i = 0; i < mask.runs.size(); ++i) {
    std::int64_t number = mask.runs[i];
    if (i > 2) number -= mask.runs[i - 2];
    for (bool more = true; more;) {
      std::int64_t group = number & 0x1f;
      number >>= 5;
      more = (group & 0x10) != 0 ? number != -1 : number != 0;
      if (more) group |= 0x20;
      text += static_cast<char>(group + '0');
    }
  }
  return text;
}

Rle runs_of_text(std::string_view text, int h, int w) {
  constexpr int kMostBits = 35;
  Rle mask{h, w, {}};
  const auto fail = [] { throw DataError("a mask's counts are no run-length text of COCO"); };
  for (std::size_t at = 0; at < text.size();) {
    std::int64_t number = 0;
    bool more = true;
    for (int shift = 0; more; shift += 5) {
      if (at == text.size() || shift > kMostBits || text[at] < '0' || text[at] > '0' + 63) fail();
      const std::int64_t group = text[at++] - '0';
      number |= (group & 0x1f) << shift;
      more = (group & 0x20) != 0;
      if (!more && (group & 0x10) != 0) number -= std::int64_t{1} << (shift + 5);
    }
    if (mask.runs.size() > 2) number += mask.runs[mask.runs.size() - 2];
    if (number < 0 || number > UINT32_MAX) fail();
    mask.runs.push_back(static_cast<std::uint32_t>(number));
  }
  check_runs(mask);
  return mask;
}

double box_overlap(const PixelBox& found, const PixelBox& truth, bool crowd) {
  const double w = side_overlap(found.left, found.width, truth.left, truth.width);
  if (w <= 0) return 0;
  const double h = side_overlap(found.top, found.height, truth.top, truth.height);
  if (h <= 0) return 0;
  const double both = w * h;
  return both / (crowd ? found.area() : found.area() + truth.area() - both);
}

double mask_overlap(const Rle& found, const Rle& truth, bool crowd) {
  DTRAIN_CHECK(found.h == truth.h && found.w == truth.w, "masks of one picture are of one size");
  std::uint64_t both = 0, either = 0;
  walk_together(found, truth, [&](std::uint32_t length, bool in_found, bool in_truth) {
    if (in_found && in_truth) both += length;
    if (in_found || (in_truth && !crowd)) either += length;
  });
  return both == 0 ? 0 : static_cast<double>(both) / static_cast<double>(either);
}

}  // namespace dtrain::data
