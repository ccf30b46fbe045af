// The files of `eval --results --report`: scores of each class, and pictures with true and found objects drawn in.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/train/coco_results.hpp>

namespace dtrain::cli {

struct ObjectReportPlaces {
  Path results, annotations;
  Path pictures;  // the folder with the images of the annotations; empty: none are drawn
};
struct ObjectReport {
  std::vector<Path> files;
  std::size_t missing = 0;  // pictures that were to be drawn and cannot be read
};

// Makes the folder. Drawn are the pictures with the most mistakes: true objects that were not found, and found ones
// that are not there. Throws Error.
ObjectReport write_object_report(const Path& folder, const train::CocoReport& report, const ObjectReportPlaces& places);

}  // namespace dtrain::cli
