// The files of `eval --report`.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/data/loader.hpp>
#include <dtrain/train/classification.hpp>

namespace dtrain::cli {

struct Judgement {
  std::vector<train::JudgedSample> samples;
  std::vector<train::ClassScore> scores;         // by label
  std::vector<std::string> names;                // by label, one for each class
  std::vector<train::CalibrationBin> bins = {};  // of the probability of the best guess
  double calibration_error() const { return train::calibration_error(bins); }
  double macro_f1() const;  // mean over the classes that have pictures
};

// `names` may be fewer than there are classes: the others are called by their labels.
Judgement judge(std::vector<train::JudgedSample> samples, std::vector<std::string> names, int classes);

struct ReportSource {
  Path records;                // as find_records() takes them
  data::RemoteOptions remote;  // for files behind URLs
};
// Writes tables and pictures to the folder, which is made, and returns their paths. Throws Error.
std::vector<Path> write_report(const Path& folder, const Judgement& judgement, const ReportSource& source);

}  // namespace dtrain::cli
