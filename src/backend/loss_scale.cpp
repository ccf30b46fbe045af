#include <dtrain/backend/loss_scale.hpp>

#include <dtrain/base/error.hpp>

namespace dtrain::backend {
namespace {

constexpr std::uint32_t kGoodSteps = 2000;  // before it is tried whether more is possible
constexpr float kLargest = 0x1p15f;  // the largest gradient of a loss by its logits is 1, the largest float16 65504
constexpr float kSmallest = 0x1p-14f;

}  // namespace

LossScale after_step(LossScale scale, bool overflowed) {
  if (overflowed) {
    if (scale.value <= kSmallest) {
      throw Error("gradients are not finite in float16, however small they are made",
                  "resume from the last checkpoint, or begin again where there is none, with a smaller setting 'lr' or "
                  "with setting 'dtype' bfloat16");
    }
    return {scale.value / 2, 0};
  }
  ++scale.good_steps;
  if (scale.good_steps < kGoodSteps) return scale;
  return {scale.value < kLargest ? scale.value * 2 : scale.value, 0};
}

}  // namespace dtrain::backend
