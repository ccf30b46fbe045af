// The arithmetic of every layer kind, one file per family. Data are float32, every sum is taken in double.
// Forward functions overwrite y. Backward functions are pure functions of the layer's input, its parameters and dy (the
// gradient of the loss by the layer's output); they ADD to dx and to the gradients of the parameters, because a value
// may have several consumers. Null bias means the layer has none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/nn/graph.hpp>

#include "samples.hpp"

namespace dtrain::backend::reference {

void convolve(const nn::Convolution& layer, const Samples& x, const float* weight, const float* bias, Samples& y);
void convolve_backward(const nn::Convolution& layer, const Samples& x, const float* weight, const Samples& dy,
                       Samples& dx, float* dweight, float* dbias);

void dense(const Samples& x, const float* weight, const float* bias, Samples& y);
void dense_backward(const Samples& x, const float* weight, const Samples& dy, Samples& dx, float* dweight,
                    float* dbias);

// Mean and biased variance of each channel.
struct Moments {
  std::vector<double> mean, variance;  // [c]
};
Moments moments_of(const Samples& x);
// Normalises by the moments given: those of x while training, the running ones in evaluation.
void batch_norm(const nn::BatchNorm& layer, const Samples& x, const Moments& moments, const float* gamma,
                const float* beta, Samples& y);
// The gradient through the moments of x too. With fix_gamma dgamma stays as it is.
void batch_norm_backward(const nn::BatchNorm& layer, const Samples& x, const float* gamma, const Samples& dy,
                         Samples& dx, float* dgamma, float* dbeta);

// Where the moments were given and are no function of x.
void fixed_norm_backward(const nn::BatchNorm& layer, const Moments& moments, const float* gamma, const Samples& dy,
                         Samples& dx);

void layer_norm(const nn::LayerNorm& layer, const Samples& x, const float* gamma, const float* beta, Samples& y);
void layer_norm_backward(const nn::LayerNorm& layer, const Samples& x, const float* gamma, const Samples& dy,
                         Samples& dx, float* dgamma, float* dbeta);

void local_response_norm(const nn::LocalResponseNorm& layer, const Samples& x, Samples& y);
void local_response_norm_backward(const nn::LocalResponseNorm& layer, const Samples& x, const Samples& dy, Samples& dx);

// `gain`: one number for each channel.
void layer_scale(const Samples& x, const float* gain, Samples& y);
void layer_scale_backward(const Samples& x, const float* gain, const Samples& dy, Samples& dx, float* dgain);

// `position`: for each pixel a number for each channel.
void class_token(const Samples& x, const float* token, Samples& y);
void class_token_backward(const Samples& dy, Samples& dx, float* dtoken);
void add_position(const Samples& x, const float* position, Samples& y);
void add_position_backward(const Samples& dy, Samples& dx, float* dposition);
void first_token(const Samples& x, Samples& y);
void first_token_backward(const Samples& dy, Samples& dx);

void attend(const nn::Attention& layer, const Samples& x, Samples& y);
void attend_backward(const nn::Attention& layer, const Samples& x, const Samples& dy, Samples& dx);

void activate(const nn::Activation& layer, const Samples& x, Samples& y);
void activate_backward(const nn::Activation& layer, const Samples& x, const Samples& dy, Samples& dx);

void scale(const nn::Scale& layer, const Samples& x, Samples& y);
void scale_backward(const nn::Scale& layer, const Samples& dy, Samples& dx);

void pool(const nn::Pooling& layer, const Samples& x, Samples& y);
void pool_backward(const nn::Pooling& layer, const Samples& x, const Samples& dy, Samples& dx);

void add(const Samples& a, const Samples& b, Samples& y);
void add_backward(const Samples& dy, Samples& dx);  // once for each of the two inputs

void concat(std::span<const Samples* const> inputs, Samples& y);
// Once for each input: `first` is where its values begin in a sample of the output.
void concat_backward(const Samples& dy, std::int64_t first, Samples& dx);

void multiply(const Samples& x, const Samples& factors, Samples& y);
void multiply_backward(const Samples& x, const Samples& factors, const Samples& dy, Samples& dx, Samples& dfactors);

void upsample(const Samples& x, Samples& y);
void upsample_backward(const Samples& dy, Samples& dx);
void pyramid(std::span<const Samples* const> levels, Samples& y);
// Once for each level.
void pyramid_backward(const nn::LevelPlace& place, const Samples& dy, Samples& dx);
void keep_levels(const nn::KeepLevels& layer, const Samples& x, Samples& y);
void keep_levels_backward(const nn::KeepLevels& layer, const Samples& dy, Samples& dx);

// What is drawn of which samples: see StepKey and RegionDraw.
struct DrawKey {
  StepKey step;
  int node = 0;
  const std::uint32_t* sample_ids = nullptr;  // [n]
};

void transposed_convolve(const nn::TransposedConvolution& layer, const Samples& x, const float* weight,
                         const float* bias, Samples& y);
void transposed_convolve_backward(const nn::TransposedConvolution& layer, const Samples& x, const float* weight,
                                  const Samples& dy, Samples& dx, float* dweight, float* dbias);

// Without a key not in training.
void propose(const nn::Proposals& layer, const std::optional<DrawKey>& key, const Samples& logits, const Samples& codes,
             const HostBatch& of, Samples& y);
void align_regions(const nn::RegionAlign& layer, const Samples& x, const Samples& regions, Samples& y);
void align_regions_backward(const nn::RegionAlign& layer, const Samples& regions, const Samples& dy, Samples& dx);
void keep_regions(const nn::KeepRegions& layer, const Samples& x, Samples& y);  // adds to y
// As the layer has them.
using RegionInputs = std::vector<const Samples*>;
void find_regions(const nn::FoundRegions& layer, bool training, const RegionInputs& inputs, const HostBatch& of,
                  Samples& y);
StepMetrics region_metrics(const nn::RegionLoss& layer, const DrawKey& key, const RegionInputs& inputs,
                           const HostBatch& of);
void region_loss_backward(const nn::RegionLoss& layer, const DrawKey& key, const RegionInputs& inputs,
                          const HostBatch& of, const std::vector<Samples*>& gradients);
// results: [n, Detections::result_size()].
void found_objects(const nn::RegionLoss& layer, const RegionInputs& inputs, std::span<float> results);

// The sums over the samples: the loss and its two parts.
StepMetrics detection_metrics(const nn::DetectionLoss& layer, const Samples& classes, const Samples& boxes,
                              const HostBatch& of);
void detection_loss_backward(const nn::DetectionLoss& layer, const Samples& classes, const Samples& boxes,
                             const HostBatch& of, Samples& dclasses, Samples& dboxes);
// results: [n, Detections::result_size()].
void detect(const nn::DetectionLoss& layer, const Samples& classes, const Samples& boxes, const HostBatch& of,
            std::span<float> results);

void drop(const nn::Dropout& layer, const DrawKey& key, const Samples& x, Samples& y);
void drop_backward(const nn::Dropout& layer, const DrawKey& key, const Samples& dy, Samples& dx);

// y: the probability of each class.
void softmax(const Samples& logits, Samples& y);
// The sum of the samples' losses, and how many samples have their label first and among the first top_k.
StepMetrics softmax_metrics(const nn::SoftmaxLoss& loss, int top_k, const Samples& logits, const HostBatch& of);
void softmax_loss_backward(const nn::SoftmaxLoss& loss, const Samples& logits, const HostBatch& of, Samples& dlogits);

}  // namespace dtrain::backend::reference
