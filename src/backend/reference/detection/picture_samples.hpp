// One picture's part of a batch.
#pragma once

#include "../../detection/heads.hpp"
#include "../samples.hpp"

namespace dtrain::backend::reference {

// Null: the batch says nothing of what its pictures show.
inline const nn::PictureObjects* objects_of(const HostBatch& batch, int sample) {
  return batch.objects ? batch.objects + sample : nullptr;
}

inline HeadValues<const float> head_of(const Samples& x, int sample) { return {x.sample(sample), 1, x.pixels()}; }
inline HeadValues<float> head_of(Samples& x, int sample) { return {x.sample(sample), 1, x.pixels()}; }

}  // namespace dtrain::backend::reference
