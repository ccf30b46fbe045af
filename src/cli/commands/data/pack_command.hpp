// What `data pack` and `data import` have in common: pictures become record files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/data/pack.hpp>

#include "config/option_set.hpp"

namespace dtrain::cli {

struct PackCommand {
  data::PackOptions pack;
  std::vector<std::string> encodings = data::encoding_names();  // that --encoding takes
  std::string encoding = "jpeg";
  bool takes_labels = false;  // whether the command has --labels and --root; others are told of `data pack`
};

void bind_pack(config::OptionSet& set, PackCommand& options);
// Packs, answers, and warns of what was left out, which makes the work partly done.
ExitCode pack_pictures(const PackCommand& options, const config::OptionSet& set, Reporter& reporter);
// About so many records with several labels that are no boxes.
std::string several_labels_text(std::uint64_t records);
// Options of a training, with a blank before each, where a step of the usual size would take more than an eighth of the
// pictures: a smaller batch, and a rate that falls with its square root. Empty for larger sets.
std::string small_set_options(std::uint64_t pictures);
// Options of a training, with a blank behind each, that suit pictures whose shorter edge was made `resize` pixels long,
// 0 where it stayed, and has `shorter_edge` now: smaller images for smaller pictures, and windows of any size for
// larger ones. Empty where the usual image will do.
std::string picture_options(int resize, int shorter_edge);
// Of a tar archive without an end mark.
void warn_of_missing_end(const std::string& archive, Reporter& reporter);
void tell_problems(const std::vector<data::PackProblem>& problems, Reporter& reporter);

}  // namespace dtrain::cli
