// dtrain_coco_masks: for each line of standard input, {"size": [h, w], "first": SEGMENTATION, "second": SEGMENTATION},
// writes what dtrain makes of the two masks. For the judge coco_masks.py only.
#include <cstdio>
#include <iostream>
#include <string>

#include <dtrain/base/json.hpp>
#include <dtrain/data/coco.hpp>

using namespace dtrain;

int main() try {
  for (std::string line; std::getline(std::cin, line);) {
    const Json json = Json::parse(line, "standard input");
    const int h = static_cast<int>(json.at("size").as_array()[0].as_integer()),
              w = static_cast<int>(json.at("size").as_array()[1].as_integer());
    data::Annotation objects[2];
    data::read_coco_mask(json.at("first"), h, w, objects[0]);
    data::read_coco_mask(json.at("second"), h, w, objects[1]);
    const data::Rle first = data::mask_of(objects[0], h, w), second = data::mask_of(objects[1], h, w);
    const data::PixelBox box = data::mask_box(first), other = data::mask_box(second);
    const Json answer = Json::object({{"counts", data::text_of_runs(first)},
                                      {"area", data::mask_area(first)},
                                      {"box", Json::array({box.left, box.top, box.width, box.height})},
                                      {"overlap", data::mask_overlap(first, second, false)},
                                      {"crowd_overlap", data::mask_overlap(first, second, true)},
                                      {"box_overlap", data::box_overlap(box, other, false)},
                                      {"crowd_box_overlap", data::box_overlap(box, other, true)}});
    std::puts(answer.dump().c_str());
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
