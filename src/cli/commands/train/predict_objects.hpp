// `dtrain predict` with a detector: lines, JSON, drawn pictures, and COCO's results file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/train/coco_ap.hpp>

#include "coco_numbers.hpp"
#include "config/option_set.hpp"

namespace dtrain::cli {

struct ObjectsChoice {
  float min_score = 0.5f;  // of what is named and drawn
  std::optional<Path> results, annotations;
};
void bind_objects(config::OptionSet& set, ObjectsChoice& choice);

// The picture with what was found in it, drawn at its size, small ones magnified. Throws DataError.
std::string draw_found(const std::string& content, const std::vector<train::FoundObject>& found,
                       const std::vector<std::string>& names);

// Answers picture after picture. One thread; borrows everything.
class ObjectAnswers {
 public:
  struct Form {
    bool csv = false;
    std::size_t path_width = 0, class_width = 0;
  };
  // `files`: all pictures that it answers. Begins the results file, if one is wanted. Throws DataError for annotations
  // that do not fit them, Error for a file that cannot be written, and UsageError for one that is there and holds no
  // list in JSON: it may be a picture, or a part of the checkpoint. Warns of classes that the annotations lack, of
  // which the results file gets no object.
  ObjectAnswers(const ObjectsChoice& choice, const std::vector<Path>& files, const std::vector<std::string>& names,
                const Form& form, Reporter& reporter);

  // `drawn`: the picture that was written; empty: none.
  void found(const Path& file, const std::vector<train::FoundObject>& all, const Path& drawn);
  // Those of `all` that are named and drawn.
  std::vector<train::FoundObject> shown(const std::vector<train::FoundObject>& all) const;
  // Without it there is no results file, or the earlier one.
  void finish();

 private:
  void answer_json(const Path& file, const std::vector<train::FoundObject>& shown, const Path& drawn);
  void answer_lines(const Path& file, const std::vector<train::FoundObject>& shown);
  void warn_of_unlisted_classes() const;
  void keep_results(const Path& file, const std::vector<train::FoundObject>& all);

  const ObjectsChoice& choice_;
  const std::vector<std::string>& names_;
  Form form_;
  Reporter& reporter_;
  std::optional<CocoNumbers> numbers_;
  bool has_heading_ = false, has_results_ = false;
  std::optional<AtomicFile> results_file_;
};

}  // namespace dtrain::cli
