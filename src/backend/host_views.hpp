// Executable::evaluate() of several views for what computes on the host: the images of each view are made there.
#pragma once

#include <functional>

#include <dtrain/backend/backend.hpp>

namespace dtrain::backend {

// Evaluates the images of a batch as they are, and counts as Executable::evaluate() does.
using EvaluateImages = std::function<StepMetrics(const HostBatch& batch, std::span<float> logits)>;

StepMetrics evaluate_views(const nn::Graph& graph, int top_k, const HostBatch& batch,
                           std::span<const nn::ImageView> views, std::span<float> logits,
                           const EvaluateImages& evaluate_images);

// The view of one image, both [c, h, w].
void view_image(const float* image, const nn::Shape& shape, const nn::ImageView& view, float* to);

}  // namespace dtrain::backend
