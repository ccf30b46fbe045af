#include "figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <dtrain/base/text.hpp>

namespace dtrain::plot {
namespace {

constexpr Color kJoined = kGreen, kLeft = kGrey, kLost = kVermilion, kResumed = kPurple;
constexpr std::array<Color, 2> kCrewBands = {0xDCE9F5, 0xC3D9EE};

constexpr double kWidth = 1000, kLeftEdge = 76, kRightEdge = kWidth - 24;
constexpr double kSignsTop = 76;
constexpr double kSignRow = 15, kBand = 20, kPanel = 150, kPanelTitle = 34, kAxis = 46;
constexpr double kLetter = 6.6;  // mean width at size 11
constexpr double kMostTicks = 50;
constexpr std::size_t kMostSignRows = 4, kMostPoints = 400, kMostLargeDots = 60;

struct Scale {
  double low = 0, high = 1;  // values
  double from = 0, to = 1;   // where they are drawn
  double operator()(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

struct Sign {
  Color color;
  std::string text;
};

Sign sign_of(const MembershipChange& change) {
  using Kind = MembershipChange::Kind;
  switch (change.kind) {
    case Kind::joined:
      return {kJoined, "+" + change.host};
    case Kind::left:
      return {kLeft, "\u2212" + change.host};
    case Kind::lost:
      return {kLost, "\u00d7" + change.host};
    case Kind::resumed:
      break;
  }
  return {kResumed, "resumed"};
}

// All validations, because their best one is looked for; the course of a training as far as the paper shows it.
std::vector<CurvePoint> shown_points(const Curve& curve) {
  return curve.dotted ? *curve.points : thinned(*curve.points, kMostPoints);
}

// Whether no line joins the points at these two times.
bool is_broken(const Curve& curve, double before, double after) {
  if (!curve.breaks) return false;
  return std::ranges::any_of(*curve.breaks, [&](const Pause& pause) {
    const double middle = (pause.from + pause.to) / 2;
    return before < middle && middle < after;
  });
}

class Figure {
 public:
  explicit Figure(const Paper& paper) : paper_(paper) {
    across_ = {0, std::max(paper.length, 1e-3), kLeftEdge, kRightEdge};
    place_signs();
    drawing_.width = kWidth;
    constexpr double kTitle = 20, kFromLeft = 24;
    label({kFromLeft, kTitleLine}, fitted(paper.title, kTitle, legend() - kFromLeft), kTitle, kInk);
    label({kFromLeft, kSubtitleLine}, paper.subtitle, 12, kFaint);
  }

  Drawing draw(const std::vector<Panel>& panels) {
    bands_top_ = top_ + static_cast<double>(sign_rows_) * kSignRow;
    const double first = bands_top_ + kBand;
    bottom_ = first + static_cast<double>(panels.size()) * (kPanelTitle + kPanel);
    std::vector<double> tops;
    for (std::size_t i = 0; i < panels.size(); ++i)
      tops.push_back(first + kPanelTitle + static_cast<double>(i) * (kPanelTitle + kPanel));
    draw_bands();
    for (std::size_t i = 0; i < panels.size(); ++i) draw_frame(panels[i], tops[i]);
    draw_changes(tops);
    for (std::size_t i = 0; i < panels.size(); ++i) draw_curves(panels[i], tops[i]);
    draw_axis();
    drawing_.height = bottom_ + kAxis;
    return std::move(drawing_);
  }

 private:
  void label(Point at, std::string text, double size, Color color, Anchor anchor = Anchor::start) {
    drawing_.marks.emplace_back(Label{at, std::move(text), size, color, anchor});
  }
  void line(Point from, Point to, Color color, double width) {
    drawing_.marks.emplace_back(Line{{from, to}, color, width});
  }

  // From the right, in rows of as many words as fit beside the title. Returns where its longest row begins.
  double legend() {
    constexpr double kGap = 18, kRow = 16, kRoom = 560;
    double x = kRightEdge, y = kTitleLine, begin = kRightEdge;
    for (const auto& [whole, color] : paper_.legend) {
      const std::string text = fitted(whole, 12, kRoom - kGap);
      const double wide = static_cast<double>(text.size()) * kLetter + kGap;
      if (x < kRightEdge && x - wide < kRightEdge - kRoom) {
        x = kRightEdge;
        y += kRow;
      }
      label({x, y}, text, 12, color, Anchor::end);
      x -= wide;
      begin = std::min(begin, x);
    }
    top_ = std::max(kSignsTop, y + 2 * kRow);
    return begin;
  }

  // Where a text is centred, so that it ends within the picture.
  static double within(double x, double half) {
    constexpr double kMargin = 4;
    return half + kMargin > kWidth / 2 ? kWidth / 2 : std::clamp(x, kMargin + half, kWidth - kMargin - half);
  }

  // Signs that would touch go to rows above each other; those that find none have a line only.
  void place_signs() {
    std::vector<double> ends;
    for (const MembershipChange& change : paper_.changes) {
      const double half = static_cast<double>(sign_of(change).text.size()) * kLetter / 2;
      const double x = within(across_(change.at), half);
      sign_places_.push_back(x);
      std::size_t row = 0;
      while (row < ends.size() && ends[row] > x - half) ++row;
      if (row == ends.size()) ends.push_back(0);
      ends[row] = x + half + 6;
      rows_.push_back(row);
    }
    sign_rows_ = std::min(ends.size(), kMostSignRows);
  }

  void draw_bands() {
    for (std::size_t i = 0; i < paper_.crews.size(); ++i) {
      const Crew& crew = paper_.crews[i];
      const double from = i == 0 ? kLeftEdge : across_(crew.at);
      const double to = i + 1 < paper_.crews.size() ? across_(paper_.crews[i + 1].at) : kRightEdge;
      drawing_.marks.emplace_back(Area{{from, bands_top_}, {to, bands_top_ + kBand}, kCrewBands[i % 2]});
      const std::string number = std::to_string(crew.workers);
      const std::string text = count_text(crew.workers, "worker");
      const double room = to - from;
      if (room > static_cast<double>(text.size()) * kLetter + 8) {
        label({(from + to) / 2, bands_top_ + 14}, text, 11, kInk, Anchor::middle);
      } else if (room > static_cast<double>(number.size()) * kLetter + 4) {
        label({(from + to) / 2, bands_top_ + 14}, number, 11, kInk, Anchor::middle);
      }
    }
  }

  // The lines leave out the titles of the panels, whose tops are given.
  void draw_changes(const std::vector<double>& tops) {
    for (std::size_t i = 0; i < paper_.changes.size(); ++i) {
      const Sign sign = sign_of(paper_.changes[i]);
      const double x = across_(paper_.changes[i].at);
      line({x, bands_top_}, {x, bands_top_ + kBand}, sign.color, 1.2);
      for (const double top : tops) line({x, top}, {x, top + kPanel}, sign.color, 1.2);
      if (rows_[i] >= sign_rows_) continue;
      const double y = bands_top_ - 5 - static_cast<double>(rows_[i]) * kSignRow;
      label({sign_places_[i], y}, sign.text, 11, sign.color, Anchor::middle);
    }
  }

  static Scale scale_of(const Panel& panel, double top) {
    double low = std::numeric_limits<double>::max(), high = std::numeric_limits<double>::lowest();
    const bool has_scale = std::ranges::any_of(
        panel.curves, [](const Curve& curve) { return curve.sets_scale && !curve.points->empty(); });
    for (const Curve& curve : panel.curves) {
      if (has_scale && !curve.sets_scale) continue;
      for (const CurvePoint& point : shown_points(curve)) {
        if (!std::isfinite(point.value)) continue;
        low = std::min(low, point.value);
        high = std::max(high, point.value);
      }
    }
    if (low > high) low = 0, high = 1;
    if (panel.from_zero) low = 0;
    // A single value needs room in proportion to it: beside 1e18, 0.5 is rounded away.
    const double room = high > low ? 0.06 * (high - low) : std::max(0.5, 0.06 * std::abs(high));
    if (!panel.from_zero) low -= room;
    return {low, std::min(high + room, panel.most), top + kPanel, top};
  }

  void draw_frame(const Panel& panel, double top) {
    const Scale scale = scale_of(panel, top);
    label({kLeftEdge, top - 9}, panel.title, 13, kInk);
    for (const double tick : round_ticks(scale.low, scale.high, 4)) {
      line({kLeftEdge, scale(tick)}, {kRightEdge, scale(tick)}, kGrid, 1);
      label({kLeftEdge - 8, scale(tick) + 4}, tick_text(tick), 11, kFaint, Anchor::end);
    }
    line({kLeftEdge, top + kPanel}, {kRightEdge, top + kPanel}, kFrame, 1);
  }

  void draw_curves(const Panel& panel, double top) {
    const Scale scale = scale_of(panel, top);
    for (const Curve& curve : panel.curves) {
      std::vector<Point> way;
      double last = 0;
      for (const CurvePoint& point : shown_points(curve)) {
        if (!std::isfinite(point.value)) continue;
        if (!way.empty() && is_broken(curve, last, point.at)) draw_way(curve, std::exchange(way, {}));
        way.push_back(
            {across_(paper_.by_epochs ? point.epochs : point.at), std::clamp(scale(point.value), top, top + kPanel)});
        last = point.at;
      }
      draw_way(curve, way);
    }
  }

  void draw_way(const Curve& curve, const std::vector<Point>& way) {
    if (way.size() > 1) drawing_.marks.emplace_back(Line{way, curve.color, 1.8});
    if (!curve.dotted && way.size() > 1) return;
    const double radius = way.size() > kMostLargeDots ? 1.6 : 3.2;
    for (const Point& at : way) drawing_.marks.emplace_back(Dot{at, radius, curve.color});
  }

  void draw_axis() {
    for (const double tick : round_ticks(0, across_.high / paper_.unit, 8)) {
      const double x = across_(tick * paper_.unit);
      line({x, bottom_}, {x, bottom_ + 5}, kFrame, 1);
      label({x, bottom_ + 19}, tick_text(tick), 11, kFaint, Anchor::middle);
    }
    label({(kLeftEdge + kRightEdge) / 2, bottom_ + 37}, paper_.unit_name, 12, kFaint, Anchor::middle);
  }

  const Paper& paper_;
  Drawing drawing_;
  Scale across_;
  std::vector<std::size_t> rows_;    // of the sign of each change
  std::vector<double> sign_places_;  // the middle of each sign
  std::size_t sign_rows_ = 0;
  double top_ = kSignsTop, bands_top_ = 0, bottom_ = 0;
};

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double round : {1.0, 2.0, 5.0}) {
    if (round * power >= rough) {
      step = round * power;
      break;
    }
  }
  if (!std::isfinite(step) || step <= 0 || low + step == low) return {};
  // The number is settled first: where doubles are further apart than 1, a counter of them would stand still.
  const double first = std::ceil(low / step - 1e-9), last = std::floor(high / step + 1e-9);
  const double number = std::min(last - first + 1, kMostTicks);
  std::vector<double> ticks;
  for (int i = 0; i < number; ++i) ticks.push_back((first + i) * step);
  return ticks;
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e12) return fmt::format("{:.3g}", value);
  if (size >= 1e9) return fmt::format("{:g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", size < 1e-12 ? 0.0 : value);
}

std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points, std::size_t most) {
  if (points.size() <= most) return points;
  std::vector<CurvePoint> means;
  for (std::size_t i = 0; i < most; ++i) {
    const std::size_t begin = i * points.size() / most, end = (i + 1) * points.size() / most;
    CurvePoint sum{.weight = 0};
    for (std::size_t j = begin; j < end; ++j) {
      const CurvePoint& point = points[j];
      if (!std::isfinite(point.value)) continue;
      sum.at += point.weight * point.at;
      sum.epochs += point.weight * point.epochs;
      sum.value += point.weight * point.value;
      sum.weight += point.weight;
    }
    if (sum.weight > 0)
      means.push_back({sum.at / sum.weight, sum.value / sum.weight, sum.epochs / sum.weight, sum.weight});
  }
  return means;
}

Drawing draw_figure(const Paper& paper, const std::vector<Panel>& panels) { return Figure(paper).draw(panels); }

}  // namespace dtrain::plot
