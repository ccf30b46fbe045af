#include "truth.hpp"

namespace dtrain::backend {

Truth truth_of(const nn::PictureObjects* objects) {
  Truth truth;
  if (!objects) return truth;
  for (std::size_t k = 0; k < objects->boxes.size(); ++k) {
    if (!objects->crowd.empty() && objects->crowd[k]) continue;
    truth.boxes.push_back(objects->boxes[k]);
    truth.classes.push_back(objects->classes[k]);
    truth.indices.push_back(k);
  }
  return truth;
}

}  // namespace dtrain::backend
