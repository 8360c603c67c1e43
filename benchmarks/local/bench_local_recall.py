"""Measures recall of the default configuration on two shapes of conversation, by words alone and with e5-small.

LoCoMo has short turns of two people, and questions that name them: frac@10. BEAM has short messages of a user beside
long ones of an assistant, and questions of the user: rec@10, which is the same measure. Both are the mean share of the
evidence among the first ten memories.

The weights that were chosen on data are then chosen anew on each half of both sets together, and measured on the other
halves. The figures of data that chose nothing are beside those of the default weights.

The benchmark reads the sets from the folder that `BEAVER_BENCH_DATA` names, and skips a missing one. Embedding BEAM
takes minutes; `BEAVER_BENCH_VECTORS` names a file that keeps the vectors for the next run.

    BEAVER_BENCH_DATA=... BEAVER_BENCH_VECTORS=build/vectors.npz python benchmarks/local/bench_local_recall.py
"""
