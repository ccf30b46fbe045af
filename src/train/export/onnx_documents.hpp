// Names of the JSON documents in the metadata_props of dtrain's ONNX models.
#pragma once

namespace dtrain::train {

inline constexpr const char* kOnnxPreprocessing = "preprocessing";
inline constexpr const char* kOnnxClasses = "classes";
inline constexpr const char* kOnnxGraph = "dtrain_graph";  // the network, so that dtrain reads its model again

}  // namespace dtrain::train
