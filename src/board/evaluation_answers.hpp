// The validations of a run, and the reports that `dtrain eval --report` wrote beside it.
#pragma once

#include <string>

#include <dtrain/base/json.hpp>
#include <dtrain/net/http_server.hpp>

#include "model_answers.hpp"
#include "run.hpp"

namespace dtrain::board {

// The figures of an event "evaluation" as curves have them: "loss", "accuracy", and "top_5_accuracy" where the
// run asked for the best five guesses; of a detector "box_ap", "box_ap50", "mask_ap" and "mask_ap50".
Json validation_figures(const Json& event);

// {"validations": [...]}, with the same names; of a detector with the average precision of its boxes and masks.
Json validations_of(const Run& run);

// Adds to `answer` the report ?report=NAME. Reports are folders with per_class.csv inside the run's folder or beside
// its checkpoints; without a name it is the first one that is called after the run, or after no training beside it.
void add_report(Json& answer, const RunPlace& run, const Target& target);

// class_curves() of ?report=NAME. Throws Missing.
Json curves_of_report(const RunPlace& run, const Target& target);

// ?report=NAME&name=FILE: a picture of that report. Throws Missing.
net::HttpResponse picture_of_report(const RunPlace& run, const Target& target);

}  // namespace dtrain::board
