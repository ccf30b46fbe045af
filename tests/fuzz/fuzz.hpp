// Feeds damaged input to the parsers. A parser may return or throw a dtrain::Error; anything else is a defect.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/random.hpp>

namespace dtrain::fuzz {

// One parser: good inputs to start from, and how one input is given to it.
struct Target {
  std::string name;
  std::vector<std::string> seeds;
  std::function<void(const std::string& input)> parse;
};

// `folder` is for targets that read files; it must outlive them.
std::vector<Target> text_targets();
std::vector<Target> answer_targets();  // what servers answer
std::vector<Target> image_targets();
std::vector<Target> record_targets(const Path& folder);
std::vector<Target> archive_targets(const Path& folder);
std::vector<Target> data_targets(const Path& folder);     // all of the above
std::vector<Target> network_targets(const Path& folder);  // what peers, nodes and ssh servers send
std::vector<Target> checkpoint_targets(const Path& folder);
std::vector<Target> weights_targets();  // of other programs
std::vector<Target> spec_targets();

// A seed with one to four mistakes: bits, bytes, numbers, pieces lost, doubled or moved. A pure function of `random`.
std::string damage(std::string input, RandomStream& random);

// Without the syncs of write_file_atomic, which would take most of the time here.
void write_quickly(const Path& path, const std::string& content);

}  // namespace dtrain::fuzz
