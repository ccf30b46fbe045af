// dtrain_paste_masks: for each line of standard input, {"size": [h, w], "side": N, "box": [left, top, right, bottom],
// "likely": [...]}, writes the runs of the mask in the picture. For the judge paste_masks.py only.
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>

#include "train/detection/paste_mask.hpp"

using namespace dtrain;

int main() try {
  for (std::string line; std::getline(std::cin, line);) {
    const Json json = Json::parse(line, "standard input");
    const auto whole = [](const Json& number) { return static_cast<int>(number.as_integer()); };
    const auto edge = [&](std::size_t i) { return static_cast<float>(json.at("box").as_array()[i].as_number()); };
    std::vector<float> likely;
    for (const Json& value : json.at("likely").as_array()) likely.push_back(static_cast<float>(value.as_number()));
    const data::Rle mask =
        train::paste_mask(likely, whole(json.at("side")), {edge(0), edge(1), edge(2), edge(3)},
                          whole(json.at("size").as_array()[0]), whole(json.at("size").as_array()[1]));
    std::puts(Json(Json::Array(mask.runs.begin(), mask.runs.end())).dump().c_str());
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
