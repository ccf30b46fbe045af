// `dtrain eval --results`: what a results file of COCO is worth, whichever program wrote it.
#pragma once

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/train/coco_results.hpp>

#include "config/option_set.hpp"

namespace dtrain::cli {

struct ResultsChoice {
  Path results, annotations, pictures;
  bool any() const { return !results.empty() || !annotations.empty(); }
};

void bind_results(config::OptionSet& set, ResultsChoice& choice);
// `report`: the folder of object_report.hpp; empty: none.
ExitCode score_results(const ResultsChoice& choice, bool per_class, const Path& report, Reporter& reporter);

// The twelve numbers as lines and as JSON, and with `per_class` the AP of each category.
void answer_coco_score(const std::string& what, const train::CocoScore& score,
                       const std::vector<std::string>& categories, bool per_class, Reporter& reporter);
Json coco_score_json(const train::CocoScore& score, const std::vector<std::string>& categories);

}  // namespace dtrain::cli
