// What `data pack` and `data import` have in common: pictures become record files.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/data/pack.hpp>

#include "console.hpp"
#include "option_set.hpp"

namespace dtrain::cli {

struct PackCommand {
  data::PackOptions pack;
  std::vector<std::string> encodings = data::encoding_names();  // that --encoding takes
  std::string encoding = "jpeg";
};

void bind_pack(OptionSet& set, PackCommand& options);
// Packs, answers, and warns of what was left out, which makes the work partly done.
ExitCode pack_pictures(const PackCommand& options, Console& console);
void tell_problems(const std::vector<data::PackProblem>& problems, Console& console);

}  // namespace dtrain::cli
