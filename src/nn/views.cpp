#include <dtrain/nn/views.hpp>

#include <dtrain/base/error.hpp>

namespace dtrain::nn {
namespace {

constexpr ImageView kOne[] = {{}};
constexpr ImageView kTwo[] = {{0, 0, 0, 0.5f}, {0, 0, 1, 0.5f}};
constexpr ImageView kSix[] = {{0, 0, 0, 0.25f},    {0, 0, 1, 0.25f},  {-1, -1, 0, 0.125f},
                              {-1, -1, 1, 0.125f}, {1, 1, 0, 0.125f}, {1, 1, 1, 0.125f}};

}  // namespace

std::span<const ImageView> image_views(int number) {
  switch (number) {
    case 1:
      return kOne;
    case 2:
      return kTwo;
    case 6:
      return kSix;
    default:
      DTRAIN_CHECK(false, "1, 2 or 6 views");
  }
}

}  // namespace dtrain::nn
