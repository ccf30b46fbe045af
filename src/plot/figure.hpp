// Curves in panels above each other, over one axis of time or epochs, with the changes of the membership.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "plot_run.hpp"
#include "plot_style.hpp"

namespace dtrain::plot {

struct Curve {
  const std::vector<CurvePoint>* points;
  Color color;
  bool dotted = false;     // a few values, each of its own weight
  bool sets_scale = true;  // else it is cut off at the edges that the other curves of the panel give it
  const std::vector<Pause>* breaks = nullptr;  // where its line does not go on
};

struct Panel {
  std::string title;
  std::vector<Curve> curves;
  bool from_zero = false;
  double most = std::numeric_limits<double>::max();  // no axis reaches beyond
};

// What stands around the panels.
struct Paper {
  std::string title, subtitle;
  std::vector<std::pair<std::string, Color>> legend;  // from the right
  std::vector<Crew> crews = {};
  std::vector<MembershipChange> changes = {};
  bool by_epochs = false;  // the axis; else by seconds
  double length = 0;       // of the axis
  double unit = 1;         // what its numbers count
  std::string unit_name;
};

Drawing draw_figure(const Paper& paper, const std::vector<Panel>& panels);

// About `count` round numbers from `low` to `high`; none where a double cannot tell them apart.
std::vector<double> round_ticks(double low, double high, int count);
// The number of a tick: "20k", "1.5G", "4.3e+24".
std::string tick_text(double value);
// At most `most` points: the means of runs of neighbours by their weights. Values that are not finite do not count.
std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points, std::size_t most);

}  // namespace dtrain::plot
