// The picture of a run: samples a second, loss and accuracy over time, with every change of the membership; and of
// several runs over their epochs.
#pragma once

#include "drawing.hpp"
#include "plot_run.hpp"

namespace dtrain::plot {

Drawing draw_run(const RunCurves& curves, const std::string& title);

struct NamedRun {
  std::string name;
  RunCurves curves;
};
inline constexpr std::size_t kMostRuns = 7;  // that colours can distinguish
Drawing draw_comparison(const std::vector<NamedRun>& runs);

}  // namespace dtrain::plot
