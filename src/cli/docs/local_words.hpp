// What a shell offers for a value, from this machine's files alone: nothing is connected to, nothing is waited for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>

#include "cli/command.hpp"

namespace dtrain::cli {

struct LocalPlaces {
  Path here = ".";
  Path job{};     // --job-dir as far as it stands in the command line; empty: not given
  Path prefix{};  // of checkpoints: --model-prefix, or the command's first word; empty: not given
  Path mount{};   // EFS_MOUNT; empty: none
};

// The job and the prefix that a begun command line names; words are what line feeds separate, or blanks where there are
// none.
LocalPlaces places_of(const CommandTree& tree, const std::string& line);

// `kind`: hosts, jobs, networks, checkpoints or epochs; `begun`: the word so far, all of which stands in every
// candidate. Folders that may lead to more end in '/'. Sorted. None for an unknown kind.
std::vector<std::string> local_words(std::string_view kind, const std::string& begun, const LocalPlaces& places);

}  // namespace dtrain::cli
