#include "heads.hpp"

namespace dtrain::backend {

BoxCode code_of_anchor(const AnchorSet& anchors, std::int64_t anchor, const HeadValues<const float>& boxes) {
  const std::int64_t pixel = anchors.pixels[static_cast<std::size_t>(anchor / anchors.at_pixel)];
  BoxCode code;
  for (std::size_t side = 0; side < code.size(); ++side) {
    code[side] = boxes.at(pixel, anchor % anchors.at_pixel * 4 + static_cast<std::int64_t>(side));
  }
  return code;
}

}  // namespace dtrain::backend
