// The picture of a run: samples a second, loss and accuracy over time, with every change of the membership.
#pragma once

#include "drawing.hpp"
#include "plot_run.hpp"

namespace dtrain::plot {

Drawing draw_run(const RunCurves& curves, const std::string& title);

// About `count` round numbers from `low` to `high`, which must differ.
std::vector<double> round_ticks(double low, double high, int count);
// At most `most` points: the means of runs of neighbours.
std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points, std::size_t most);

}  // namespace dtrain::plot
