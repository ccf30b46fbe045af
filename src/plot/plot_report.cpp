#include "plot_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include <dtrain/base/error.hpp>

#include "drawing_raster.hpp"
#include "plot_style.hpp"

namespace dtrain::plot {
namespace {

constexpr Color kPaper = 0xFFFFFF;
constexpr Color kRight = 0x0072B2, kWrong = 0xD55E00, kGap = 0xF3C9AE;  // of the palette of Okabe and Ito
constexpr double kMargin = 24;

Color mix(Color from, Color to, double share) {
  Color mixed = 0;
  for (const int shift : {16, 8, 0}) {
    const double a = from >> shift & 0xFF, b = to >> shift & 0xFF;
    mixed |= static_cast<Color>(a + (b - a) * share + 0.5) << shift;
  }
  return mixed;
}

// Some of the classes of a matrix, in the order of their labels.
class Confusion {
 public:
  Confusion(std::span<const std::uint64_t> counts, std::size_t classes) : counts_(counts), classes_(classes) {
    constexpr std::size_t kMost = 40;
    std::vector<std::uint64_t> mistakes(classes);
    for (std::size_t truth = 0; truth < classes; ++truth) {
      for (std::size_t guess = 0; guess < classes; ++guess) {
        if (truth == guess) continue;
        mistakes[truth] += at(truth, guess);
        mistakes[guess] += at(truth, guess);
      }
    }
    shown.resize(classes);
    std::iota(shown.begin(), shown.end(), std::size_t{0});
    if (classes <= kMost) return;
    std::ranges::stable_sort(shown, std::greater{}, [&](std::size_t label) { return mistakes[label]; });
    shown.resize(kMost);
    std::erase_if(shown, [&](std::size_t label) { return mistakes[label] == 0; });
    if (shown.empty()) shown.push_back(0);
    std::ranges::sort(shown);
  }

  std::uint64_t at(std::size_t truth, std::size_t guess) const { return counts_[truth * classes_ + guess]; }
  std::uint64_t pictures(std::size_t truth) const {
    const auto row = counts_.subspan(truth * classes_, classes_);
    return std::accumulate(row.begin(), row.end(), std::uint64_t{0});
  }
  std::size_t classes() const { return classes_; }

  std::vector<std::size_t> shown;  // labels

 private:
  std::span<const std::uint64_t> counts_;
  std::size_t classes_;
};

void add_title(const std::string& title, const std::string& subtitle, Drawing& drawing) {
  drawing.marks.push_back(Area{{0, 0}, {drawing.width, drawing.height}, kPaper});
  drawing.marks.push_back(Label{{kMargin, kTitleLine}, title, 17, kInk});
  drawing.marks.push_back(Label{{kMargin, kSubtitleLine}, subtitle, 11, kFaint});
}

void add_cell(Point from, double side, std::uint64_t count, double share, bool right, Drawing& drawing) {
  constexpr double kSmallestText = 18;
  const Color color = count == 0 ? kPaper : mix(kPaper, right ? kRight : kWrong, 0.06 + 0.94 * share);
  drawing.marks.push_back(Area{from, {from.x + side - 1, from.y + side - 1}, color});
  if (count == 0 || side < kSmallestText) return;
  const double size = std::min(12.0, side * 0.36);
  const Color ink = share > 0.6 ? kPaper : kInk;
  const Point middle{from.x + side / 2, from.y + side / 2 + size * 0.36};
  drawing.marks.push_back(Label{middle, fmt::format("{}", count), size, ink, Anchor::middle});
}

}  // namespace

Drawing draw_confusion(std::span<const std::uint64_t> counts, const std::vector<std::string>& names) {
  const std::size_t classes = names.size();
  DTRAIN_CHECK(counts.size() == classes * classes, "a matrix has a row and a column for each name");
  const Confusion confusion(counts, classes);
  const auto drawn = static_cast<double>(confusion.shown.size());
  const double side = std::clamp(720 / drawn, 18.0, 56.0), letters = std::min(12.0, side * 0.75);
  double room = 60;  // for the names
  for (const std::size_t label : confusion.shown) {
    room = std::max(room, (static_cast<double>(names[label].size()) + 6) * letters * kLetterShare);
  }
  room = std::min(room, 220.0);
  const double left = kMargin + room + 8, top = kSubtitleLine + 52;
  Drawing drawing{std::max(left + drawn * side + kMargin + 8, 520.0), top + drawn * side + kMargin, {}};
  add_title("Confusion matrix",
            confusion.shown.size() < classes
                ? fmt::format("the {} of {} classes with the most mistakes", confusion.shown.size(), classes)
                : "rows: what the pictures show; columns: what they are taken for",
            drawing);
  drawing.marks.push_back(Area{{left - 1, top - 1}, {left + drawn * side, top + drawn * side}, kGrid});
  constexpr double kSmallestName = 8;
  double heading = letters;  // size of the names over the columns, if that is large enough to read
  for (const std::size_t label : confusion.shown) {
    heading = std::min(
        heading, (side - 4) / (kLetterShare * static_cast<double>(std::max<std::size_t>(1, names[label].size()))));
  }
  const bool names_fit = heading >= kSmallestName;
  const auto digits = static_cast<double>(fmt::format("{}", classes).size());
  if (!names_fit) heading = std::min(letters, (side - 3) / (0.64 * digits));
  for (std::size_t row = 0; row < confusion.shown.size(); ++row) {
    const std::size_t truth = confusion.shown[row];
    const double y = top + static_cast<double>(row) * side, x = left + static_cast<double>(row) * side;
    const std::string number = fmt::format("{}", truth);
    const std::string tail = names[truth] == number ? "" : "  " + number;
    const double room_for_name = room - static_cast<double>(tail.size()) * letters * kLetterShare;
    const std::string name = fitted(names[truth], letters, room_for_name) + tail;
    drawing.marks.push_back(Label{{left - 8, y + side / 2 + letters * 0.36}, name, letters, kInk, Anchor::end});
    drawing.marks.push_back(
        Label{{x + side / 2, top - 8}, names_fit ? names[truth] : number, heading, kInk, Anchor::middle});
    const auto pictures = static_cast<double>(std::max<std::uint64_t>(1, confusion.pictures(truth)));
    for (std::size_t column = 0; column < confusion.shown.size(); ++column) {
      const std::size_t guess = confusion.shown[column];
      const std::uint64_t count = confusion.at(truth, guess);
      add_cell({left + static_cast<double>(column) * side, y}, side, count, static_cast<double>(count) / pictures,
               truth == guess, drawing);
    }
  }
  return drawing;
}

Drawing draw_reliability(std::span<const ReliabilityBin> bins, double calibration_error) {
  constexpr double kSide = 420, kLeft = 72, kTop = 76, kHistogram = 90, kSpace = 26;
  const double histogram = kTop + kSide + kSpace, bottom = histogram + kHistogram;
  Drawing drawing{kLeft + kSide + kMargin + 8, bottom + 52, {}};
  add_title("Reliability", fmt::format("expected calibration error {:.4f} in {} bins", calibration_error, bins.size()),
            drawing);
  const auto x = [&](double share) { return kLeft + share * kSide; };
  const auto y = [&](double share) { return kTop + (1 - share) * kSide; };
  for (int i = 0; i <= 10; i += 2) {
    const double at = i / 10.0;
    drawing.marks.push_back(Line{{{x(0), y(at)}, {x(1), y(at)}}, kGrid, 1});
    drawing.marks.push_back(Label{{x(0) - 8, y(at) + 4}, fmt::format("{:.1f}", at), 11, kFaint, Anchor::end});
    drawing.marks.push_back(Label{{x(at), bottom + 18}, fmt::format("{:.1f}", at), 11, kFaint, Anchor::middle});
  }
  std::uint64_t most = 1;
  for (const ReliabilityBin& bin : bins) most = std::max(most, bin.samples);
  for (const ReliabilityBin& bin : bins) {
    if (bin.samples == 0) continue;
    const double from = x(bin.low) + 1, to = x(bin.high) - 1;
    drawing.marks.push_back(Area{{from, y(bin.accuracy)}, {to, y(0)}, mix(kPaper, kRight, 0.75)});
    const double low = std::min(bin.accuracy, bin.confidence), high = std::max(bin.accuracy, bin.confidence);
    drawing.marks.push_back(Area{{from, y(high)}, {to, y(low)}, kGap});
    drawing.marks.push_back(Line{{{from, y(bin.accuracy)}, {to, y(bin.accuracy)}}, kRight, 2.5});
    const double height = kHistogram * static_cast<double>(bin.samples) / static_cast<double>(most);
    drawing.marks.push_back(Area{{from, bottom - height}, {to, bottom}, kFrame});
  }
  drawing.marks.push_back(Line{{{x(0), y(0)}, {x(1), y(1)}}, kFaint, 1.2});
  drawing.marks.push_back(Line{{{x(0), y(1)}, {x(0), y(0)}, {x(1), y(0)}}, kFrame, 1});
  drawing.marks.push_back(Line{{{x(0), bottom}, {x(1), bottom}}, kFrame, 1});
  drawing.marks.push_back(Label{{x(0) + 10, y(1) + 16}, "accuracy; the gap to the confidence is shaded", 11, kFaint});
  drawing.marks.push_back(Label{{x(0), histogram - 8}, fmt::format("pictures, at most {} in a bin", most), 11, kFaint});
  drawing.marks.push_back(
      Label{{x(0.5), bottom + 38}, "confidence: probability of the best guess", 12, kInk, Anchor::middle});
  return drawing;
}

namespace {

void paste(const data::Image& picture, int top, int left, data::Image& onto) {
  for (int row = 0; row < picture.h; ++row) {
    const auto from = static_cast<std::size_t>(row) * static_cast<std::size_t>(picture.w) * 3;
    const auto to =
        (static_cast<std::size_t>(top + row) * static_cast<std::size_t>(onto.w) + static_cast<std::size_t>(left)) * 3;
    std::copy_n(picture.pixels.begin() + static_cast<std::ptrdiff_t>(from), static_cast<std::size_t>(picture.w) * 3,
                onto.pixels.begin() + static_cast<std::ptrdiff_t>(to));
  }
}

}  // namespace

data::Image draw_mistakes(std::span<const Mistake> mistakes) {
  constexpr int kColumns = 6, kGap = 16, kText = 54, kTop = 72;
  constexpr int kStepX = kThumbnailSide + kGap, kStepY = kThumbnailSide + kText + kGap;
  const int count = static_cast<int>(mistakes.size());
  const int columns = std::clamp(count, 3, kColumns), rows = std::max(1, (count + kColumns - 1) / kColumns);
  Drawing drawing{static_cast<double>(2 * kMargin - kGap + columns * kStepX),
                  count == 0 ? 120.0 : static_cast<double>(kTop + rows * kStepY),
                  {}};
  add_title("Worst mistakes",
            count == 0 ? "none: every picture got its class"
                       : "wrong guesses, the most confident first: the class, and the guess",
            drawing);
  const auto corner = [&](int i) {
    const int column = i % kColumns, row = i / kColumns;
    return Point{kMargin + column * kStepX, static_cast<double>(kTop + row * kStepY)};
  };
  for (int i = 0; i < count; ++i) {
    const Mistake& each = mistakes[static_cast<std::size_t>(i)];
    const Point at = corner(i);
    const double text = at.y + kThumbnailSide;
    drawing.marks.push_back(Area{at, {at.x + kThumbnailSide, text}, kGrid});
    drawing.marks.push_back(Label{{at.x, text + 17}, fitted(each.truth, 13, kThumbnailSide), 13, kInk});
    const std::string share = fmt::format("  {:.1f} %", 100 * each.probability);
    drawing.marks.push_back(Label{{at.x, text + 33}, fitted(each.guess, 13, kThumbnailSide - 60) + share, 13, kWrong});
    drawing.marks.push_back(Label{{at.x, text + 47}, fitted(each.caption, 10, kThumbnailSide), 10, kFaint});
  }
  data::Image sheet = to_image(drawing, 1);
  for (int i = 0; i < count; ++i) {
    const data::Image& picture = mistakes[static_cast<std::size_t>(i)].picture;
    DTRAIN_CHECK(picture.c == 3 && picture.h <= kThumbnailSide && picture.w <= kThumbnailSide, "a thumbnail fits");
    paste(picture, static_cast<int>(corner(i).y) + (kThumbnailSide - picture.h) / 2,
          static_cast<int>(corner(i).x) + (kThumbnailSide - picture.w) / 2, sheet);
  }
  return sheet;
}

}  // namespace dtrain::plot
